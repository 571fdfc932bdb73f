<?php
// Router for php -S: files are served as they are, PHP files run, all else goes to index.php.
$path = urldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH) ?: '/');
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if (is_dir($file) && is_file(rtrim($file, '/') . '/index.php')) {
    if (substr($path, -1) !== '/') {
        header("Location: $path/", true, 301);
        return true;
    }
    $file = rtrim($file, '/') . '/index.php';
} elseif (is_file($file)) {
    if (substr($file, -4) !== '.php') {
        return false;
    }
} elseif (preg_match('#^(/.*?\.php)(/.*)$#', $path, $parts)
          && is_file($_SERVER['DOCUMENT_ROOT'] . $parts[1])) {
    $file = $_SERVER['DOCUMENT_ROOT'] . $parts[1];
    $_SERVER['PATH_INFO'] = $parts[2];
    $path = $parts[1];
} else {
    $file = $_SERVER['DOCUMENT_ROOT'] . '/index.php';
    $path = '/index.php';
}
$_SERVER['SCRIPT_FILENAME'] = $file;
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = substr($file, strlen($_SERVER['DOCUMENT_ROOT']));
chdir(dirname($file));
require $file;
