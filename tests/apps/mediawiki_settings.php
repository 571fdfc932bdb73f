// Appended to the LocalSettings.php that MediaWiki's installer has written: caches before it hold the
// pages of those who have not logged in and are told of each edit with PURGE.
$wgServer = 'http://' . ($_SERVER['HTTP_HOST'] ?? 'site.test');
$wgUseCdn = getenv('SITE_CDN') !== '';
$wgCdnServers = $wgUseCdn ? [getenv('SITE_CDN')] : [];
$wgCdnServersNoPurge = ['127.0.0.1'];
$wgCdnMaxAge = 3600;
$wgEnableUploads = true;
$wgUseImageMagick = false;
$wgJobRunRate = 0;
$wgShowExceptionDetails = true;
$wgTmpDirectory = getenv('SITE_FOLDER');
$wgCacheDirectory = false;
$wgMainCacheType = CACHE_NONE;
$wgSessionCacheType = CACHE_DB;
$wgRateLimits = [];
$wgDefaultUserOptions['watchdefault'] = 0;
