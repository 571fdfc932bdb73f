sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    set req.url = regsuball(req.url, "(utm_[a-z]+|fbclid|gclid)=[^&]*&?", "");
    set req.url = regsub(req.url, "[?&]+$", "");
    if (req.url ~ "^/lib/(exe/(css|js|jquery|manifest|opensearch)\.php|tpl/|images/|scripts/)") {
        unset req.http.Cookie;
    }
    if (req.http.Cookie ~ "DW[0-9a-f]+=") { return (pass); }
    if (req.url !~ "^/lib/exe/fetch\.php" && req.http.Cookie ~ "DokuWiki=") { return (pass); }
    unset req.http.Cookie;
}
sub vcl_backend_response {
    if (bereq.url ~ "^/lib/exe/fetch\.php") { unset beresp.http.Set-Cookie; }
    if (bereq.url ~ "^/lib/(tpl|images|scripts)/") { set beresp.ttl = 1h; }
}
