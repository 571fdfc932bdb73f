acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) { return (synth(405)); }
        return (purge);
    }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    if (req.url ~ "^/wp-(admin|login\.php|cron\.php)") { return (pass); }
    if (req.http.Cookie ~ "wordpress_(logged_in|sec)_|comment_author_|wp-postpass_") { return (pass); }
    unset req.http.Cookie;
    set req.url = regsuball(req.url, "(utm_[a-z]+|fbclid|gclid)=[^&]*&?", "");
    set req.url = regsub(req.url, "[?&]+$", "");
}
sub vcl_backend_response {
    if (beresp.ttl > 0s && beresp.http.Cache-Control !~ "max-age") {
        set beresp.ttl = 5m;
        set beresp.grace = 1h;
    }
}
