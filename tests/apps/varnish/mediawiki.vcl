acl purgers { "127.0.0.1"; }
sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) { return (synth(405)); }
        return (purge);
    }
    if (req.method != "GET" && req.method != "HEAD") { return (pass); }
    set req.url = regsuball(req.url, "(utm_[a-z]+|fbclid|gclid)=[^&]*&?", "");
    set req.url = regsub(req.url, "[?&]+$", "");
    if (req.http.Cookie ~ "(_session|UserID|UserName|Token|LoggedOut)=") { return (pass); }
    unset req.http.Cookie;
}
sub vcl_deliver {
    if (resp.http.Cache-Control ~ "s-maxage" && req.url !~ "^/load\.php") {
        set resp.http.Cache-Control = "private, must-revalidate, s-maxage=0, max-age=0";
    }
}
