"""scripts/plotting.py: how the libraries of the report's page are fetched."""

import base64
import hashlib
import http.server
import io
import os
import sys
import tarfile
import threading

import harness

SCRIPT = harness.TOP / "scripts/plotting.py"


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Registry(http.server.BaseHTTPRequestHandler):
    """Serves the archives of `packages`, by path."""

    packages = {}

    def do_GET(self):
        body = self.packages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


class PlottingTest(harness.SystemTest):
    needs = ()

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(harness.TOP / "scripts"))
        self.addCleanup(sys.path.remove, str(harness.TOP / "scripts"))
        import plotting
        self.plotting = plotting
        d3 = archive({"dist/d3.min.js": b"d3", "LICENSE": b"ISC"})
        plot = archive({"dist/plot.umd.min.js": b"plot", "LICENSE": b"ISC"})
        Registry.packages = {"/d3/-/d3-7.9.0.tgz": d3,
                             "/@observablehq/plot/-/plot-0.6.17.tgz": plot}
        self.saved = plotting.PACKAGES, dict(os.environ)
        plotting.PACKAGES = [
            (name, version, "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode(), files)
            for (name, version, _, files), body in zip(plotting.PACKAGES, (d3, plot))]
        self.addCleanup(self.restore)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        os.environ["NPM_CONFIG_REGISTRY"] = f"http://127.0.0.1:{self.server.server_port}/"
        os.environ["no_proxy"] = "127.0.0.1"

    def restore(self):
        self.plotting.PACKAGES, environment = self.saved
        os.environ.clear()
        os.environ.update(environment)

    def test_it_is_installed_from_the_registry_that_is_configured(self):
        folder = self.dir / "third_party"
        self.plotting.install(folder)
        self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir() if p.suffix == ".js"},
                         {"d3.min.js": b"d3", "plot.umd.min.js": b"plot"})
        self.assertEqual((folder / "VERSIONS").read_text(), self.plotting.stamp())
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.startswith("tmp")], [])

    def test_another_archive_is_refused_and_nothing_is_changed(self):
        folder = self.dir / "third_party"
        self.plotting.install(folder)
        Registry.packages["/@observablehq/plot/-/plot-0.6.17.tgz"] = archive(
            {"dist/plot.umd.min.js": b"another", "LICENSE": b"ISC"})
        (folder / "d3.min.js").write_bytes(b"before")
        with self.assertRaisesRegex(self.plotting.Failure, "plot 0.6.17: the checksum of the archive"):
            self.plotting.install(folder)
        self.assertEqual((folder / "d3.min.js").read_bytes(), b"before")
        self.assertEqual((folder / "plot.umd.min.js").read_bytes(), b"plot")

    def test_the_registry_is_the_one_that_npm_is_configured_to_use(self):
        def registry(npmrc, name="d3", **env):
            path = self.dir / "npmrc"
            path.write_text(npmrc)
            os.environ["NPM_CONFIG_USERCONFIG"] = str(path)
            for variable in ("NPM_CONFIG_REGISTRY", "npm_config_registry"):
                os.environ.pop(variable, None)
            os.environ.update(env)
            return self.plotting.registry_for(name)

        self.assertEqual(registry(""), self.plotting.DEFAULT_REGISTRY)
        self.assertEqual(registry("fund=false\n registry = http://r.test/npm/ \n"), "http://r.test/npm/")
        self.assertEqual(registry("; registry=http://r.test\n#registry=http://r.test\n"),
                         self.plotting.DEFAULT_REGISTRY)
        self.assertEqual(registry("registry=http://${R_HOST}/\n", R_HOST="r.test"), "http://r.test/")
        self.assertEqual(registry("registry=http://r.test\n", NPM_CONFIG_REGISTRY="http://e.test"),
                         "http://e.test")
        scoped = "registry=http://r.test\n@observablehq:registry=http://s.test\n"
        self.assertEqual(registry(scoped), "http://r.test")
        self.assertEqual(registry(scoped, "@observablehq/plot"), "http://s.test")

    def test_a_registry_that_has_no_such_package_is_named(self):
        Registry.packages = {}
        with self.assertRaisesRegex(self.plotting.Failure, "d3 7.9.0 from 127.0.0.1: .*404"):
            self.plotting.install(self.dir / "third_party")
        self.assertFalse((self.dir / "third_party").exists())

    def test_a_packagers_folder_is_not_filled(self):
        env = {**os.environ, "PLOT_DIR": str(self.dir)}
        done = self.run_program([SCRIPT], env=env)
        self.assertEqual(done.returncode, 69)
        self.assertIn(b"lacks one of: d3.min.js, plot.umd.min.js", done.stderr)
        self.assertEqual(self.run_program([SCRIPT, "--check"], env=env).returncode, 1)
        for name in self.plotting.NEEDED:
            (self.dir / name).write_text("")
        self.assertEqual(self.run_program([SCRIPT], env=env).returncode, 0)
