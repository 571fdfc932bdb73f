"""The contestants of http.py: sunproxyd and other caches, each as a reverse proxy before one origin.

Each has two threads or processes, stores everything in memory for an hour, writes no access log, and
is otherwise as its package configures it. A server that is not installed is left out. Debian's
packages have the names in PEERS.

nginx is measured twice, since no setting is best for all sizes: `nginx` has "sendfile off", which is
its own default and costs less for small bodies, `nginx-sendfile` has "sendfile on; tcp_nopush on", as
Debian's nginx.conf does, which costs less for large ones. Either has its files in /dev/shm and keeps
them open.
"""
import os
import pathlib
import shutil
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402
from server import Failure, Server  # noqa: E402, F401

PEERS = {"nginx": "nginx-light", "nginx-sendfile": "nginx-light", "trafficserver": "trafficserver",
         "varnish": "varnish", "squid": "squid"}
THREADS = 2
CAPACITY = 2 << 30  # bytes


def start_origin(build, folder):
    """The scripted origin: any path with size=BYTES in its query, fresh for an hour."""
    port = free_port()
    return Server("origin", [build / "tests/origin/origin", "--quiet", "--http-port", str(port),
                             "--header", "Cache-Control: max-age=3600"], port,
                  folder).wait_until_listening()


def start_sunproxyd(folder, origin_port, build, capacity=CAPACITY, environment=None):
    port = free_port()
    return Server("sunproxyd",
                  [build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
                   "--http", f"127.0.0.1:{port}", "--origin", f"/=http://127.0.0.1:{origin_port}",
                   "--allow-net", "127.0.0.0/8", "--allow-port", "any",
                   "--workers", str(THREADS), "--capacity-bytes", str(capacity),
                   "--max-connections-per-client", "0", "--max-fetches-per-origin", "256",
                   "--max-idle-per-origin", "64"],
                  port, folder, environment)


def start_nginx(folder, origin_port, _build, sendfile=False, capacity=CAPACITY):
    port = free_port()
    sending = "sendfile on; tcp_nopush on;" if sendfile else "sendfile off;"
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.error; worker_processes {THREADS};
{"user root;" if os.getuid() == 0 else ""}
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000000; {sending}
  open_file_cache max=10000; open_file_cache_valid 1h;
  proxy_cache_path /dev/shm/{folder.name} keys_zone=pages:64m max_size={capacity >> 20}m inactive=1h;
  proxy_temp_path {folder}/proxy; client_body_temp_path {folder}/body;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} backlog=8192;
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_cache pages; }}
  }}
}}""")
    return Server(folder.name, [shutil.which("nginx"), "-p", folder, "-c", folder / "nginx.conf"],
                  port, folder)


def start_nginx_sendfile(folder, origin_port, build):
    return start_nginx(folder, origin_port, build, sendfile=True)


def start_trafficserver(folder, origin_port, _build, capacity=CAPACITY, memory=None):
    """Its files are below one folder, a copy of the packaged ones that is changed."""
    port = free_port()
    root = folder / "trafficserver"
    layout = {"prefix": "/usr", "exec_prefix": "/usr", "bindir": "/usr/bin", "sbindir": "/usr/sbin",
              "libdir": "/usr/lib/trafficserver", "includedir": "/usr/include",
              "libexecdir": "/usr/lib/trafficserver/modules"}
    for name in ("sysconfdir", "datadir", "localstatedir", "runtimedir", "logdir", "cachedir"):
        (root / name).mkdir(parents=True)
        layout[name] = root / name
    (root / "runroot.yaml").write_text("".join(f"{key}: {path}\n" for key, path in layout.items()))
    etc = root / "sysconfdir"
    for path in pathlib.Path("/etc/trafficserver").iterdir():
        if path.is_file():
            shutil.copy(path, etc)
    settings = {
        "http.server_ports STRING": f"{port}:ip-in=127.0.0.1",
        "exec_thread.autoconfig INT": 0,
        "exec_thread.limit INT": THREADS,
        "cache.ram_cache.size INT": memory or capacity // 2,
        "cache.ram_cache_cutoff INT": 200 << 20,
        "http.cache.required_headers INT": 0,
        "log.logging_enabled INT": 0,
    }
    if os.getuid() != 0:
        settings["admin.user_id STRING"] = str(os.getuid())
    records = etc / "records.config"
    lines = [line for line in records.read_text().splitlines()
             if not any(f"proxy.config.{name} " in line for name in settings)]
    lines += [f"CONFIG proxy.config.{name} {value}" for name, value in settings.items()]
    records.write_text("\n".join(lines) + "\n")
    (etc / "storage.config").write_text(f"{root}/cachedir {capacity >> 20}M\n")
    (etc / "remap.config").write_text(f"map / http://127.0.0.1:{origin_port}/\n")
    if os.getuid() == 0:  # it refuses to run as root
        for path in (root, *root.rglob("*")):
            shutil.chown(path, "trafficserver")
        folder.chmod(0o755)
        folder.parent.chmod(0o755)
    environment = dict(os.environ, TS_RUNROOT=str(root))
    return Server("trafficserver", ["/usr/bin/traffic_server"], port, folder, environment)


def start_varnish(folder, origin_port, _build, capacity=CAPACITY):
    port = free_port()
    user = ["-j", "none"]
    return Server("varnish",
                  ["/usr/sbin/varnishd", "-F", "-n", folder / "varnish", *user,
                   "-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{origin_port}", "-s", f"malloc,{capacity}",
                   "-p", "thread_pools=2", "-p", "thread_pool_min=20", "-p", "http_max_hdr=128"],
                  port, folder)


def start_squid(folder, origin_port, _build, capacity=CAPACITY):
    port = free_port()
    (folder / "squid.conf").write_text(f"""
http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent {origin_port} 0 no-query originserver
http_access allow all
cache_mem {capacity >> 20} MB
maximum_object_size_in_memory 200 MB
maximum_object_size 200 MB
access_log none
cache_log stdio:/dev/stderr
pid_filename {folder}/squid.pid
coredump_dir {folder}
max_filedescriptors 16384
""")
    return Server("squid", ["/usr/sbin/squid", "-N", "-f", folder / "squid.conf"], port, folder)


STARTERS = {"sunproxyd": start_sunproxyd, "nginx": start_nginx,
            "nginx-sendfile": start_nginx_sendfile, "trafficserver": start_trafficserver,
            "varnish": start_varnish, "squid": start_squid}
PROGRAMS = {"nginx": "nginx", "nginx-sendfile": "nginx", "trafficserver": "/usr/bin/traffic_server",
            "varnish": "/usr/sbin/varnishd", "squid": "/usr/sbin/squid"}


def installed(name):
    return name == "sunproxyd" or shutil.which(PROGRAMS[name]) is not None
