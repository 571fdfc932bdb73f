"""scripts/plotting.py and the Makefile: how the plotting library gets into the build."""

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
        self.saved = plotting.PACKAGES, plotting.shutil.which, dict(os.environ)
        plotting.PACKAGES = [
            (name, version, "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode(), files)
            for (name, version, _, files), body in zip(plotting.PACKAGES, (d3, plot))]
        plotting.shutil.which = lambda _: None  # no npm
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
        self.plotting.PACKAGES, self.plotting.shutil.which, environment = self.saved
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

    def test_without_npm_and_registry_it_says_what_to_install(self):
        del os.environ["NPM_CONFIG_REGISTRY"]
        os.environ.pop("npm_config_registry", None)
        with self.assertRaisesRegex(self.plotting.Failure, "npm is not installed .*NPM_CONFIG_REGISTRY"):
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

    def test_without_the_files_make_says_what_to_install(self):
        done = self.run_program(["make", "-C", harness.TOP, f"PLOT_DIR={self.dir}",
                                 f"{self.dir}/d3.min.js"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"d3.min.js is missing: the plotting library of the report. To install it: make setup",
                      done.stderr)
        (self.dir / "d3.min.js").write_text("")
        done = self.run_program(["make", "-C", harness.TOP, f"PLOT_DIR={self.dir}",
                                 f"{self.dir}/d3.min.js"])
        self.assertEqual(done.returncode, 0, done.stderr)
