"""What each subcommand says to arguments that are wrong, and that each option that is right is taken.

One table: the arguments, the exit status, and words that standard error has (or standard output,
when the status is 0). {trace}, {dir} and {socket} stand for a small trace, the test's folder and a
path where no server is.
"""

import re

import harness

USAGE, DATAERR, NOINPUT, UNAVAILABLE, CANTCREAT = 64, 65, 66, 69, 73

CLIENT = [
    # store
    (["store"], USAGE, r"list, show, export, verify or trim is missing"),
    (["store", "show", "{dir}"], USAGE, r"FOLDER URL"),
    (["store", "list", "{dir}/none"], NOINPUT, r"none: No such file"),
    (["store", "list", "--json", "--csv", "{dir}"], USAGE, r"--csv"),
    (["store", "show", "-n", "0", "{dir}", "http://a.test/"], USAGE, r"--number"),
    (["store", "show", "{dir}", "http://a.test/"], NOINPUT, r"it is no store"),
    (["store", "verify", "{dir}"], NOINPUT, r"it is no store"),
    (["store", "export", "{dir}"], USAGE, r"--to is missing"),
    (["store", "export", "--to", "tsf", "{dir}"], USAGE, r"did you mean tsv"),
    (["store", "export", "--to", "tsv", "--files", "{dir}/x", "{dir}"], USAGE, r"exclude each other"),
    (["store", "export", "--files", "{dir}", "{dir}"], CANTCREAT, r"File exists"),
    (["store", "trim", "{dir}", "some"], USAGE, r"'some' is no size"),
    # get
    (["get"], USAGE, r"URL"),
    (["get", "--help"], 0, r"usage: sunproxy get"),
    (["get", "-H", "no colon", "http://a.test/"], USAGE, r"'Name: value'"),
    (["get", "-H", ": value", "http://a.test/"], USAGE, r"'Name: value'"),
    (["get", "-H", "A: b\r\nC: d", "http://a.test/"], USAGE, r"'Name: value'"),
    (["get", "--api", "3", "http://a.test/"], USAGE, r"--api"),
    (["get", "--jobs", "0", "http://a.test/"], USAGE, r"--jobs"),
    (["get", "--api", "1", "-i", "http://a.test/"], USAGE, r"[Vv]ersion 1"),
    (["get", "--api", "1", "--no-store", "http://a.test/"], USAGE, r"[Vv]ersion 1"),
    (["get", "--api", "1", "--fail", "http://a.test/"], USAGE, r"[Vv]ersion 1"),
    (["get", "--api", "1", "-H", "A: b", "http://a.test/"], USAGE, r"[Vv]ersion 1"),
    (["get", "--json", "-i", "http://a.test/"], USAGE, r"--include"),
    (["get", "-o", "{dir}/one", "http://a.test/", "http://b.test/"], USAGE, r"one file"),
    (["get", "-o", "{trace}/", "http://a.test/"], CANTCREAT, r"{trace}"),
    (["get", "-o", "/proc/no/such/", "http://a.test/"], CANTCREAT, r"/proc/no/such"),
    (["get", "--timeout", "soon", "http://a.test/"], USAGE, r"--timeout"),
    (["get", "--timeout", "0", "http://a.test/"], USAGE, r"--timeout"),
    (["get", "--port", "0", "http://a.test/"], USAGE, r"--port"),
    (["get", "--port", "65536", "http://a.test/"], USAGE, r"--port"),
    (["get", "--socket", "{socket}", "http://a.test/"], UNAVAILABLE, r"{socket}"),
    (["get", "-H", "A: " + 40000 * "a", "-H", "B: " + 40000 * "b", "http://a.test/"], USAGE,
     r"longer than 65536 bytes together"),
    (["get", "-o", "-", "--socket", "{socket}", "http://a.test/"], UNAVAILABLE, r"{socket}"),
    (["get", "--socket", "/" + 200 * "x", "http://a.test/"], UNAVAILABLE, r"too long"),
    # options that are none, and values that are missing or too much
    (["get", "--quite-another"], USAGE, r"unknown option '--quite-another'\nTry 'sunproxy get --help'"),
    (["get", "--verbos3=1"], USAGE, r"unknown option '--verbos3'; did you mean --verbose\?"),
    (["get", "http://a.test/", "--slient"], USAGE, r"unknown option '--slient'; did you mean --silent\?"),
    (["get", "-vq", "http://a.test/"], USAGE, r"unknown option '-q'\n"),
    # options before the command are its own
    (["--socket", "{socket}", "get", "http://a.test/"], UNAVAILABLE, r"{socket}"),
    (["--socket", "get", "get", "http://a.test/"], UNAVAILABLE, r"get: "),
    (["-v", "--jobs=2", "-o-", "--socket={socket}", "get", "http://a.test/"], UNAVAILABLE, r"{socket}"),
    (["-vo", "{dir}/get", "--port", "65536", "get", "http://a.test/"], USAGE, r"--port"),
    (["--quite-another", "get", "http://a.test/"], USAGE, r"unknown option '--quite-another'\nTry 'sunproxy get"),
    (["--socket", "get"], USAGE, r"unknown option '--socket'"),
    # options of curl
    (["get", "-x", "http://proxy:3128", "http://a.test/"], USAGE,
     r"unknown option '-x' \(--proxy\): name the server's HTTP front with --http, or its RPC front"),
    (["get", "--insecure", "https://a.test/"], USAGE, r"unknown option '--insecure': the server verifies"),
    (["get", "--max-time=5", "http://a.test/"], USAGE, r"unknown option '--max-time': use --timeout"),
    (["get", "-sS", "http://a.test/"], USAGE, r"unknown option '-S' \(--show-error\): .*leave --silent out"),
    (["get", "-T", "file", "http://a.test/"], USAGE, r"'-T' \(--upload-file\): use --request PUT"),
    (["get", "-C", "-", "http://a.test/"], USAGE, r"'-C' \(--continue-at\): use --range"),
    # what only HTTP has, and what only RPC has
    (["get", "-d", "a=b", "http://a.test/"], USAGE, r"RPC protocol has no --data: .* --http HOST:PORT"),
    (["get", "-X", "PUT", "-r", "0-1", "--max-age", "5", "http://a.test/"], USAGE,
     r"has no --request, --range and --max-age: .*--http"),
    (["get", "--only-if-cached", "--no-cache", "http://a.test/"], USAGE,
     r"has no --only-if-cached and --no-cache: .*--http"),
    (["get", "-H", "Name;", "http://a.test/"], USAGE, r"has no --header 'Name;': .*--http"),
    (["get", "--http", "h:1", "--socket", "/s", "--port", "5", "http://a.test/"], USAGE,
     r"--socket and --port cannot be given with it"),
    (["get", "--http", "h:1", "--host", "h", "--api", "2", "http://a.test/"], USAGE,
     r"--host and --api cannot be given with it"),
    (["get", "--http", "nowhere", "http://a.test/"], USAGE, r"is HOST:PORT or unix:PATH, not 'nowhere'"),
    (["get", "--http", "unix:", "http://a.test/"], USAGE, r"is HOST:PORT or unix:PATH"),
    (["get", "--http", "http://unix:/a", "http://a.test/"], USAGE, r"is HOST:PORT or unix:PATH"),
    (["get", "--http", "h:65536", "http://a.test/"], USAGE, r"is HOST:PORT or unix:PATH"),
    (["get", "--http", "unix:{socket}", "http://a.test/"], UNAVAILABLE, r"cannot connect.*{socket}"),
    (["get", "--http", "h:1", "-X", "A B", "http://a.test/"], USAGE, r"--request is a method"),
    (["get", "--http", "h:1", "-X", "", "http://a.test/"], USAGE, r"--request is a method"),
    (["get", "--http", "h:1", "-r", "9-1", "http://a.test/"], USAGE, r"--range is a range of bytes"),
    (["get", "--http", "h:1", "-r", "x", "http://a.test/"], USAGE, r"--range is a range of bytes"),
    (["get", "--http", "h:1", "-r", "0-1\r\nA: b", "http://a.test/"], USAGE, r"--range is a range"),
    (["get", "--http", "h:1", "--max-age", "1m", "http://a.test/"], USAGE, r"--max-age is a number"),
    (["get", "--http", "h:1", "--max-age", "-1", "http://a.test/"], USAGE, r"--max-age is a number"),
    (["get", "--http", "h:1", "-I", "-d", "x", "http://a.test/"], USAGE, r"--head sends no data"),
    (["get", "--http", "h:1", "--retry", "1", "-d", "@-", "http://a.test/"], USAGE,
     r"--retry cannot send standard input again"),
    (["get", "--http", "h:1", "-d", "@-", "-"], USAGE, r"standard input is the list of URLs"),
    (["get", "--http", "h:1", "-d", "@-", "http://a.test/", "http://b.test/"], USAGE,
     r"can be sent to one URL only"),
    (["get", "--http", "h:1", "-d", "@{dir}/none", "http://a.test/"], NOINPUT,
     r"cannot read {dir}/none: No such file"),
    (["get", "--http", "h:1", "-d", "@{dir}", "http://a.test/"], NOINPUT, r"cannot read {dir}: Is a dir"),
    (["get", "--http", "unix:{socket}", "ftp://a.test/"], USAGE, r"only http and https URLs"),
    (["get", "--http", "unix:{socket}", "http://a b/"], USAGE, r"http://a b/: "),
    (["get", "--only-if-cahced", "http://a.test/"], USAGE, r"did you mean --only-if-cached\?"),
    (["stat", "--insecure"], USAGE, r"unknown option '--insecure'\n"),
    (["get", "-w", "%{htp_code}", "http://a.test/"], USAGE,
     r"--write-out: unknown variable 'htp_code'; did you mean http_code\?"),
    (["get", "-w", "%{http_code", "http://a.test/"], USAGE, r"a '}' behind each '%{'"),
    (["get", "-w", "@file", "http://a.test/"], USAGE, r"not read from a file"),
    (["get", "--json", "-w", "x", "http://a.test/"], USAGE, r"--write-out"),
    (["get", "--json", "-I", "http://a.test/"], USAGE, r"--head"),
    (["get", "--api", "1", "-I", "http://a.test/"], USAGE, r"[Vv]ersion 1.*--head"),
    (["get", "-O", "http://a.test/"], USAGE, r"http://a.test/: its path does not end in a name for a file"),
    (["get", "-O", "http://a.test"], USAGE, r"http://a.test: its path does not end"),
    (["get", "-O", "http://a.test/x/..?y"], USAGE, r"its path does not end"),
    (["get", "-O", "-o", "x", "http://a.test/y"], USAGE, r"--output and --remote-name exclude each other"),
    (["get", "--retry", "1001", "http://a.test/y"], USAGE, r"--retry"),
    (["get", "--ju", "2"], USAGE, r"unknown option '--ju'"),
    # names are exact: an abbreviation would change its meaning with the next option
    (["get", "--h"], USAGE, r"'--h'; options that begin with it: --http, --head, --header, --host, --help\n"),
    (["get", "--he"], USAGE, r"unknown option '--he'; options that begin with it: --head, --header, --help\n"),
    (["get", "--hel"], USAGE, r"unknown option '--hel'; did you mean --help\?"),
    (["set", "--polic", "lru", "--socket", "{socket}"], USAGE, r"unknown option '--polic'; did you mean --policy\?"),
    (["set", "--polic=lru", "--socket", "{socket}"], USAGE, r"unknown option '--polic'; did you mean --policy\?"),
    (["get", "http://a.test/", "--jobs"], USAGE, r"option '--jobs' needs a value"),
    (["get", "http://a.test/", "-o"], USAGE, r"option '-o' needs a value"),
    (["get", "--json=1", "http://a.test/"], USAGE, r"option '--json' takes no value"),
    (["replay", "--log-format", "json", "{trace}"], USAGE,
     r"--log-format is tsv or jsonl, not 'json'; did you mean jsonl\?"),
    # stat, set, purge, ping
    (["stat", "--watch=often", "--socket", "{socket}"], USAGE, r"--watch"),
    (["stat", "--watch=0", "--socket", "{socket}"], USAGE, r"--watch"),
    (["stat", "--port", "none"], USAGE, r"--port"),
    (["stat", "extra"], USAGE, r"'extra'"),
    (["stat", "--socket", "{socket}"], UNAVAILABLE, r"{socket}"),
    (["stat", "--help"], 0, r"counters since start, or the last reset \(set --cold\)"),
    (["get", "--help"], 0, r"do not print errors for failed fetches"),
    (["set", "--help"], 0, r"number of shards follows the\ncapacity until it is set"),
    (["set", "--policy", "", "--socket", "{socket}"], USAGE, r"--policy"),
    (["set", "--policy", 200 * "p", "--socket", "{socket}"], USAGE, r"--policy"),
    (["set", "--capacity-urls", "many", "--socket", "{socket}"], USAGE, r"--capacity-urls"),
    (["set", "--capacity-bytes", "much", "--socket", "{socket}"], USAGE, r"--capacity-bytes"),
    (["set", "--shards", "0", "--socket", "{socket}"], USAGE, r"--shards"),
    (["set", "--socket", "{socket}"], USAGE, r"nothing to set"),
    (["set", "--cold", "extra", "--socket", "{socket}"], USAGE, r"'extra'"),
    (["set", "--policy", "lru", "--socket", "{socket}"], UNAVAILABLE, r"{socket}"),
    (["set", "--help"], 0, r"--cold"),
    (["set", "--shards", "2", "--socket", "{socket}"], UNAVAILABLE, r"{socket}"),
    (["purge", "--prefix", "", "--socket", "{socket}"], USAGE, r"give --all"),
    (["purge", "--port", "none", "--all"], USAGE, r"--port"),
    (["purge", "--help"], 0, r"--prefix"),
    (["purge", "--help"], 0, r"in either case, with or without the default port"),
    (["ping", "--count", "0"], USAGE, r"--count"),
    (["ping", "--port", "none"], USAGE, r"--port"),
    (["ping", "--help"], 0, r"--count"),
    (["replay", "--help"], 0, r"--repeat"),
    (["replay", "{trace}", "{list}"], USAGE, r"one trace at a time"),
    (["purge", "--socket", "{socket}"], USAGE, r"URL"),
    (["purge", "--all", "http://a.test/", "--socket", "{socket}"], USAGE, r"--all"),
    (["purge", "--socket", "{socket}", "http://a.test/"], UNAVAILABLE, r"{socket}"),
    (["ping", "extra"], USAGE, r"extra"),
    (["ping", "--socket", "{socket}"], UNAVAILABLE, r"{socket}"),
    # passwd
    (["passwd"], USAGE, r"a file with a user is missing"),
    (["passwd", "{dir}/users"], USAGE, r"a file with a user is missing"),
    (["passwd", "{dir}/users", "a", "b"], USAGE, r"one file with a user at a time"),
    (["passwd", "--method", "md5", "{dir}/users", "a"], USAGE, r"--method is yescrypt, bcrypt or sha512"),
    (["passwd", "{dir}/users", "a:b"], USAGE, r"no colon"),
    (["passwd", "{dir}/users", "#a"], USAGE, r"no # at its begin"),
    (["passwd", "{dir}/users", ""], USAGE, r"1 to 255 bytes"),
    (["passwd", "{dir}/users", 256 * "a"], USAGE, r"1 to 255 bytes"),
    (["passwd", "--delete", "{dir}/none", "a"], NOINPUT, r"{dir}/none: No such file"),
    (["passwd", "--help"], 0, r"67 no such user"),
    # replay
    (["replay"], USAGE, r"trace"),
    (["replay", "--policy", "", "{trace}"], USAGE, r"--policy"),
    (["replay", "--capacity", "x", "{trace}"], USAGE, r"--capacity"),
    (["replay", "--via", "post", "{trace}"], USAGE, r"--via"),
    (["replay", "--jobs", "1025", "{trace}"], USAGE, r"--jobs"),
    (["replay", "--repeat", "1001", "{trace}"], USAGE, r"--repeat"),
    (["replay", "--log", "-", "{trace}"], USAGE, r"--log"),
    (["replay", "--log-format", "xml", "{trace}"], USAGE, r"--log-format"),
    (["replay", "--socket", "{socket}", "{trace}"], UNAVAILABLE, r"{socket}"),
    (["replay", "--capacity", "10%B", "--socket", "{socket}", "{list}"], USAGE, r"sizes"),
    (["replay", "--socket", "{socket}", "{oracle}"], DATAERR, r"numbers"),
    (["replay", "{dir}/none"], NOINPUT, r"{dir}/none"),
]

LABORATORY = [
    # the trace's options, which all commands share
    (["simulate", "--redirects", "sometimes", "{trace}"], USAGE, r"--redirects"),
    (["simulate", "--redirects", "keep", "{trace}"], 0, r"lru"),
    (["simulate", "--redirects", "drop", "{trace}"], 0, r"lru"),
    (["simulate", "--cut-query", "--all-schemes", "--unique", "{trace}"], 0, r"lru"),
    (["simulate", "--limit", "0", "{trace}"], USAGE, r"--limit"),
    (["simulate", "--limit", "3", "{trace}"], 0, r"lru"),
    (["simulate", "--since", "yesterday", "{trace}"], USAGE, r"--since"),
    (["simulate", "--until", "2024-13-01", "{trace}"], USAGE, r"--until"),
    (["simulate", "--since", "1970-01-01", "--until", "2100-01-01T00:00:00+02:00", "{trace}"], 0, r"lru"),
    (["simulate", "--format", "no-such", "{trace}"], USAGE, r"no-such"),
    (["simulate", "--methods", "", "{trace}"], USAGE, r"method"),
    (["simulate", "--statuses", "2000", "{trace}"], USAGE, r"status"),
    (["simulate", "--site", "nowhere", "{trace}"], USAGE, r"site .*'nowhere'"),
    # simulate
    (["simulate", "--polcy", "lru", "{trace}"], USAGE, r"unknown option '--polcy'; did you mean --policy\?"),
    (["trace", "convert", "--too", "tsv", "{trace}"], USAGE, r"trace convert: unknown option '--too'; did you mean --to\?"),
    (["simulate", "--json", "--csv", "{trace}"], USAGE, r"--json and --csv exclude each other\nTry"),
    (["simulate", "--csv", "--json", "{trace}"], USAGE, r"--csv and --json exclude each other\nTry"),
    (["simulate", "--json", "--json", "--policy", "lru", "{trace}"], 0, r"\{"),
    (["simulate"], USAGE, r"trace"),
    (["simulate", "--policy", "lruu", "{trace}"], USAGE, r"lru"),
    (["simulate", "--policy", "", "{trace}"], USAGE, r"polic"),
    (["simulate", "--capacity", "0", "--policy", "lru", "{trace}"], 0, r"capacity is zero"),
    (["simulate", "--capacity", "-1%", "{trace}"], USAGE, r"--capacity"),
    (["simulate", "--capacity", "200%", "--policy", "lru", "{trace}"], 0, r"lru"),
    (["simulate", "--curve=furlongs", "{trace}"], USAGE, r"--curve"),
    (["simulate", "--points", "0", "{trace}"], USAGE, r"--points"),
    (["simulate", "--warmup", "200%", "{trace}"], USAGE, r"--warmup"),
    (["simulate", "--sample", "2", "{trace}"], USAGE, r"--sample"),
    (["simulate", "--seed", "x", "{trace}"], USAGE, r"--seed"),
    (["simulate", "--jobs", "0", "{trace}"], USAGE, r"--jobs"),
    (["simulate", "--log-format", "xml", "{trace}"], USAGE, r"--log-format"),
    (["simulate", "--log", "{dir}/log", "--policy", "lru,fifo", "--capacity", "2", "{trace}"], USAGE, r"one policy"),
    (["simulate", "--log", "/proc/no/such", "--policy", "lru", "--capacity", "2", "{trace}"], CANTCREAT,
     r"/proc/no/such"),
    (["simulate", "--sizes", "{dir}/none", "{list}"], NOINPUT, r"{dir}/none"),
    (["simulate", "--sizes", "/dev/zero", "{list}"], DATAERR, r"line 1: Message too long"),
    (["simulate", "--capacity", "1M", "{list}"], USAGE, r"size"),
    (["simulate", "--curve", "--points", "5", "{trace}"], 0, r"lru"),
    (["simulate", "--curve=bytes", "--points", "5", "--by-bytes", "--csv", "{trace}"], 0, r"lru"),
    (["simulate", "--curve=urls", "--points", "5", "--ignore-sizes", "--json", "{trace}"], 0, r"lru"),
    (["simulate", "--warmup", "10%", "--csv", "{trace}"], 0, r"lru"),
    (["simulate", "--warmup", "10%", "--policy", "lru", "{trace}"], 0, r"without the first 20 requests"),
    (["simulate", "--policy", "lru,LRU,fifo,all", "--capacity", "2", "--csv", "{trace}"], 0,
     r"(?s)\A(?!.*,lru,.*,lru,).*,lru,"),
    (["simulate", "--policy", "lru", "--capacity", "2", "{trace}", "{list}"], 0,
     r"{trace} and 1 more file \(in the order given\)"),
    (["simulate", "--separate", "--policy", "lru", "--capacity", "2", "{trace}", "{list}"], 0,
     r"(?s){trace}.*\n\n.*{list}"),
    (["simulate", "--capacity", ",".join(map(str, range(1, 1002))), "{trace}"], USAGE, r"at most 1000 at once"),
    (["simulate", "--curve", "--log", "{dir}/log", "--policy", "lru", "{trace}"], USAGE, r"a curve has no log"),
    (["simulate", "--log", "{dir}/log", "--policy", "lru", "--capacity", "2", "--sample", ".5", "{trace}"], USAGE,
     r"leave --sample out"),
    (["simulate", "--curve", "--points", "3", "--policy", "lru,arc", "--sample", ".5", "{trace}"], 0,
     r"from a sample"),
    (["simulate", "--policy", "lru", "--capacity", "2", "--sizes", "{sizes}", "{list}"], DATAERR,
     r"sizes of \d+ of \d+ URLs are unknown"),
    (["simulate", "{dir}/none"], NOINPUT, r"{dir}/none"),
    (["simulate", "{dir}"], NOINPUT, r"{dir}"),
    # advise
    (["advise"], USAGE, r"trace"),
    (["advise", "--policy", "lru", "{trace}", "{list}"], 0,
     r" and 1 more file \(in the order given\): "),
    (["advise", "--share", "101%", "{trace}"], USAGE, r"--share"),
    (["advise", "--share", "0", "{trace}"], USAGE, r"--share"),
    (["advise", "--help"], 0, r"--share"),
    (["advise", "--share", "50%", "--json", "{trace}"], 0, r"polic"),
    (["advise", "--policy", "lru,arc", "--sample", ".5", "{trace}"], 0, r"Estimated from a sample of \d+ of the \d+ URLs"),
    (["advise", "--policy", "lru,arc", "--sample", ".5", "--by-bytes", "{trace}"], 0, r"Estimated from a sample"),
    # report
    (["report"], USAGE, r"trace"),
    (["report", "-o", "/proc/no/such", "{trace}"], CANTCREAT, r"/proc/no/such"),
    (["report", "--points", "0", "{trace}"], USAGE, r"--points"),
    (["report", "--live", "{dir}/none", "-o", "{dir}/r.html", "{trace}"], NOINPUT, r"{dir}/none"),
    (["report", "--live", "{trace}", "-o", "{dir}/r.html", "{trace}"], DATAERR, r"{trace}"),
    (["report", "--live", "/dev/zero", "-o", "{dir}/r.html", "{trace}"], NOINPUT, r"too large"),
    (["report", "--sizes", "a", "--sizes", "b", "-o", "{dir}/r.html", "{trace}"], USAGE, r"--sizes"),
    (["report", "-o", "-", "--policy", "lru", "--points", "3", "{trace}"], 0, r"<!DOCTYPE html>"),
    (["report", "-o", "-", "--policy", "lru", "--points", "3", "--sample", ".5", "{trace}"], 0, r"<!DOCTYPE html>"),
    (["report", "-o", "-", "--policy", "lru", "--points", "3", "{messy}", "{list}"], 0, r"<!DOCTYPE html>"),
    (["report", "--help"], 0, r"--live"),
    # trace
    (["trace"], USAGE, r"describe"),
    (["trace", "no-such"], USAGE, r"no-such"),
    (["trace", "convert"], USAGE, r"trace"),
    (["trace", "convert", "--to", "no-such", "{trace}"], USAGE, r"no-such"),
    (["trace", "convert", "-o", "/proc/no/such", "{trace}"], USAGE, r"--to"),
    (["trace", "convert", "--to", "tsv", "-o", "/proc/no/such", "{trace}"], CANTCREAT, r"/proc/no/such"),
    (["trace", "convert", "--to", "tsv", "{trace}"], 0, r"url"),
    (["trace", "describe"], USAGE, r"trace"),
    (["trace", "describe", "--busiest", "x", "{trace}"], USAGE, r"--busiest"),
    (["trace", "describe", "--busiest", "0", "{trace}"], 0, r"requests"),
    (["trace", "describe", "--json", "{oracle}"], 0, r"requests"),
    (["trace", "describe", "{messy}"], 0, r"(?s)1 requests? out of order.*5 B assumed for 1 URL"),
    (["trace", "describe", "{trace}", "{list}"], 0, r"{trace} and 1 more file \(in the order given\)"),
    (["trace", "describe", "--separate", "{trace}", "{list}"], 0, r"(?s){trace}.*\n\n{list}"),
    (["trace", "describe", "--help"], 0, r"--busiest"),
    (["trace", "convert", "--help"], 0, r"--to"),
    (["trace", "generate", "--help"], 0, r"--sizes"),
    (["trace", "generate", "-n", "12", "thrift-repeated"], USAGE, r"multiples of five"),
    (["trace", "generate", "--constant", "1x", "zipf"], USAGE, r"--constant"),
    (["trace", "generate", "--rate", "2e9", "zipf"], USAGE, r"--rate"),
    (["trace", "generate"], USAGE, r"workload"),
    (["trace", "generate", "zipf", "uniform"], USAGE, r"one workload"),
    (["trace", "generate", "no-such"], USAGE, r"no-such"),
    (["trace", "generate", "--requests", "0", "zipf"], USAGE, r"--requests"),
    (["trace", "generate", "--urls", "0", "zipf"], USAGE, r"--urls"),
    (["trace", "generate", "--seed", "x", "zipf"], USAGE, r"--seed"),
    (["trace", "generate", "--constant", "11", "zipf"], USAGE, r"--constant"),
    (["trace", "generate", "--constant", "", "zipf"], USAGE, r"--constant"),
    (["trace", "generate", "--constant", "-1", "zipf"], USAGE, r"--constant"),
    (["trace", "generate", "--constant", "1", "uniform"], USAGE, r"constant"),
    (["trace", "generate", "--reads", "1.5", "ycsb-a"], USAGE, r"--reads"),
    (["trace", "generate", "--rate", "fast", "zipf"], USAGE, r"--rate"),
    (["trace", "generate", "--sizes", "huge", "zipf"], USAGE, r"--sizes"),
    (["trace", "generate", "--site", "nowhere", "zipf"], USAGE, r"--site"),
    (["trace", "generate", "--to", "no-such", "zipf"], USAGE, r"no-such"),
    (["trace", "generate", "-n", "20", "--urls", "5", "--constant", ".5", "--rate", "10", "--sizes",
      "uniform:1:100", "--to", "tsv", "zipf"], 0, r"http://www.example.com/"),
    (["trace", "generate", "-n", "20", "--reads", ".5", "--to", "urls", "ycsb-a"], 0, r"http://"),
    # policies and the whole
    (["policies", "no-such"], USAGE, r"no-such"),
    (["policies", "--help"], 0, r"usage"),
    (["policies", "lru", "fifo"], USAGE, r"one policy at a time"),
    (["policies", "--no-such-option"], USAGE, r"no-such-option"),
    (["help", "--help"], 0, r"usage"),
    (["help", "-h"], 0, r"usage"),
    (["-h"], 0, r"usage"),
    (["-V"], 0, r"\d+\.\d+"),
    (["help", "trace", "no-such"], USAGE, r"no-such"),
    (["help", "stat", "no-such"], USAGE, r"unknown command .stat no-such."),
    (["help", "trace", "describe"], 0, r"--busiest"),
    (["--version"], 0, r"\d+\.\d+"),
    (["no-such"], USAGE, r"no-such"),
    (["pruge", "--all"], USAGE, r"unknown command 'pruge'; did you mean purge\?\nTry 'sunproxy --help'"),
    (["trace", "descirbe"], USAGE, r"unknown command 'trace descirbe'; did you mean describe\?"),
    (["--hlp"], USAGE, r"unknown option '--hlp'; did you mean --help\?\nTry 'sunproxy --help'"),
    (["-x"], USAGE, r"unknown option '-x'\nTry 'sunproxy --help'"),
    (["trace", "--versoin"], USAGE, r"unknown option '--versoin'\nTry 'sunproxy trace --help'"),
    (["help", "stta"], USAGE, r"unknown command 'stta'; did you mean stat\?"),
    ([], USAGE, r"usage"),
]


class UsageTest(harness.SystemTest):
    seconds = 15
    needs = (harness.SUNPROXY,)

    def setUp(self):
        super().setUp()
        self.names = {"dir": str(self.dir), "socket": str(self.dir / "none.sock")}
        for name, to, options in (("trace", "tsv", ["--rate", "10", "--sizes", "uniform:1:9000"]),
                                  ("list", "urls", []), ("oracle", "oracle", [])):
            path = self.dir / f"{name}.{to}"
            self.sunproxy("trace", "generate", "-n", "200", "--urls", "40", "--to", to, "-o", path,
                          *options, "zipf")
            self.names[name] = str(path)
        for name, text in (("messy", "time\turl\tsize\n3\thttp://a/1\t5\n2\thttp://a/2\t\n"
                            "4\thttp://a/1\t\n5\thttp://a/3\t7\n"),
                           ("sizes", "\nhttp://www.example.com/1\t5\n\nhttp://b.test\t7\n")):
            path = self.dir / name
            path.write_text(text)
            self.names[name] = str(path)

    def fill_in(self, text):
        for name, value in self.names.items():
            text = text.replace("{%s}" % name, value)
        return text

    def check(self, table):
        for arguments, status, words in table:
            with self.subTest(arguments=arguments):
                argv = [harness.SUNPROXY, *(self.fill_in(a) for a in arguments)]
                done = self.run_program(argv)
                text = (done.stderr if status else done.stdout).decode(errors="replace")
                self.assertEqual(done.returncode, status, done.stderr.decode(errors="replace"))
                self.assertRegex(text, re.compile(self.fill_in(words)))
                if status:
                    self.assertNotIn(b"Sanitizer", done.stderr)

    def test_client(self):
        self.check(CLIENT)

    def test_laboratory(self):
        self.check(LABORATORY)

    def test_the_environment_names_a_server(self):
        for value, words in (("unix:" + self.names["socket"], re.escape(self.names["socket"])),
                             ("nonsense", "SUNPROXY_SERVER"), ("host:0", "SUNPROXY_SERVER"),
                             (":1", "SUNPROXY_SERVER"), ("[::1]:1", r"::1"), ("127.0.0.1:1", "127.0.0.1")):
            with self.subTest(value=value):
                done = self.run_program([harness.SUNPROXY, "ping"], env={"SUNPROXY_SERVER": value})
                self.assertIn(done.returncode, (USAGE, UNAVAILABLE))
                self.assertRegex(done.stderr.decode(), words)
