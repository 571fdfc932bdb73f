sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    unset req.http.Cookie;
}
sub vcl_backend_response {
    if (bereq.url ~ "\.tgz$" && beresp.status == 200) { set beresp.ttl = 30d; }
}
