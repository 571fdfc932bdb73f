sub vcl_recv {
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    set req.url = regsuball(req.url, "(utm_[a-z]+|fbclid|gclid)=[^&]*&?", "");
    set req.url = regsub(req.url, "[?&]+$", "");
    if (req.http.Cookie ~ "(sessionid|csrftoken|messages)=") { return (pass); }
    unset req.http.Cookie;
}
