<?php
// Installs WordPress into its database: two authors with a private post each, a password-protected post.
// Run by wordpress.py with the site's folder as the working directory.
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'site.test';
$_SERVER['REQUEST_URI'] = '/';
require getcwd() . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install('Example', 'admin', 'admin@site.test', true, '', 'admin-password');
update_option('permalink_structure', '/%postname%/');
update_option('comment_moderation', 1);
update_option('comment_registration', 0);
update_option('show_comments_cookies_opt_in', 1);
update_option('comment_previously_approved', 0);
switch_theme('twentytwentythree');

foreach (['alice', 'bob'] as $name) {
    $author = wp_create_user($name, "$name-password", "$name@site.test");
    (new WP_User($author))->set_role('author');
    wp_insert_post([
        'post_title' => "Diary of $name", 'post_name' => "diary-$name", 'post_author' => $author,
        'post_content' => "secret-of-$name", 'post_status' => 'private',
    ]);
    wp_insert_post([
        'post_title' => "News of $name", 'post_name' => "news-$name", 'post_author' => $author,
        'post_content' => "news-from-$name", 'post_status' => 'publish',
    ]);
}
wp_insert_post([
    'post_title' => 'Guarded', 'post_name' => 'guarded', 'post_author' => 1,
    'post_content' => 'secret-of-guarded', 'post_status' => 'publish',
    'post_password' => 'guard-password',
]);
flush_rewrite_rules(false);
