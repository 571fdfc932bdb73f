"""The proxies that hits.py compares, each before the same application: sunproxyd alone and with the
rules of packaging/recipes, Varnish and nginx alone and as they are usually configured for it.

What is usual is in varnish/APP.vcl and nginx/APP.conf beside this file. Both programs have Debian's
defaults otherwise; nginx has a cache, since it has none by default.
"""

import os
import shutil

from driver import HERE, Program, write_recipe

ALONE = "sunproxyd"
WITH_RULES = "sunproxyd, rules"

NGINX = """
daemon off; pid %(folder)s/nginx.pid; error_log %(folder)s/nginx.error; worker_processes 1; %(user)s
events { worker_connections 1024; }
http {
  access_log off;
  client_max_body_size 64m;
  client_body_temp_path %(folder)s/body; proxy_temp_path %(folder)s/proxy;
  fastcgi_temp_path %(folder)s/f; uwsgi_temp_path %(folder)s/u; scgi_temp_path %(folder)s/s;
  proxy_cache_path %(folder)s/cache keys_zone=pages:8m max_size=64m;
  proxy_cache_key $scheme$host$request_uri;
  proxy_set_header Host $host;
  proxy_http_version 1.1;
  add_header X-Cache-Status $upstream_cache_status always;
  upstream origin { server 127.0.0.1:%(origin)s; }
  %(rest)s
}
"""
NGINX_ALONE = """
server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://origin; proxy_cache pages; }
}
"""


def start_sunproxyd(run, folder, site, rules):
    argv = [run.build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
            "--http", f"127.0.0.1:{run.proxy_port}", "--purge-net", "127.0.0.1",
            "--access-log", folder / "access.log"]
    if rules:
        argv += ["--config", write_recipe(folder, site.recipe, run.backend_port)]
    else:
        argv += ["--origin", f"/=http://127.0.0.1:{run.backend_port}"]
    return Program(run, "sunproxyd", argv, folder=folder)


def start_varnish(run, folder, site, rules):
    vcl = folder / "default.vcl"
    usual = (HERE / f"varnish/{site.recipe}.vcl").read_text() if rules else ""
    vcl.write_text('vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "%s"; }\n%s'
                   % (run.backend_port, usual))
    return Program(run, "varnishd", ["/usr/sbin/varnishd", "-F", "-n", folder / "work", "-j", "none",
                                     "-a", f"127.0.0.1:{run.proxy_port}", "-f", vcl,
                                     "-s", "malloc,64M"], folder=folder)


def start_nginx(run, folder, site, rules):
    usual = (HERE / f"nginx/{site.recipe}.conf").read_text() if rules else NGINX_ALONE
    config = folder / "nginx.conf"
    config.write_text(NGINX % {"folder": folder, "origin": run.backend_port,
                               "user": "user root;" if os.getuid() == 0 else "",
                               "rest": usual.replace("PORT", str(run.proxy_port))})
    return Program(run, "nginx", [nginx(), "-p", folder, "-c", config], folder=folder)


def nginx():
    return shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")


CONTESTANTS = {
    ALONE: (start_sunproxyd, False),
    WITH_RULES: (start_sunproxyd, True),
    "Varnish": (start_varnish, False),
    "Varnish, VCL": (start_varnish, True),
    "nginx": (start_nginx, False),
    "nginx, configured": (start_nginx, True),
}


def start(name, run, site):
    """Starts a contestant at the port where visitors connect, with a folder of its own."""
    starter, rules = CONTESTANTS[name]
    folder = run.folder / name.replace(", ", "-")
    folder.mkdir()
    run.port = run.proxy_port
    program = starter(run, folder, site, rules)
    program.await_port(run.port)
    return program


def installed(name):
    starter = CONTESTANTS[name][0]
    return (starter is start_sunproxyd or starter is start_varnish and os.path.exists("/usr/sbin/varnishd")
            or starter is start_nginx and nginx() is not None)
