#include "study/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/load.h"
#include "cli/output.h"

#define MAX_FILE (16u << 20)
#define MAX_PATH 4096u

/* Where the folder is from the program's own: installed, and in the tree that it was built in. */
static const char *const beside[] = {"../share/sunproxy", "../third_party"};

/* Both files of a folder: 0 or an errno, with the path of the file that it is about. */
static int
read_folder(const char *folder, struct report_library *library, struct buf *path)
{
    const struct {
        const char *name;
        struct buf *into;
    } files[] = {{"d3.min.js", &library->d3}, {"plot.umd.min.js", &library->plot}};
    int error = 0;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !error; i++) {
        buf_reset(path);
        buf_reset(files[i].into);
        if (buf_printf(path, "%s/%s", folder, files[i].name))
            error = load_file(buf_str(path), files[i].into);
        else
            error = ENOMEM;
    }
    return error;
}

/* One of the folders beside the program's own has both. */
static bool
read_beside(struct report_library *library, struct buf *path)
{
    char program[MAX_PATH], *slash;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    bool good = false;

    if (len <= 0)
        return false;
    program[len] = '\0';
    slash = strrchr(program, '/');
    if (!slash)
        return false;
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]) && !good; i++) {
        char folder[2 * MAX_PATH];

        snprintf(folder, sizeof(folder), "%.*s/%s", (int)(slash - program), program, beside[i]);
        good = read_folder(folder, library, path) == 0;
    }
    return good;
}

int
report_library_read(const char *folder, struct report_library *library)
{
    const char *named = folder ? folder : getenv("SUNPROXY_PLOT_DIR");
    struct buf path;
    int status = EX_OK, error = 0;

    buf_init(&library->d3, MAX_FILE);
    buf_init(&library->plot, MAX_FILE);
    buf_init(&path, 2 * MAX_PATH);
    if (named && *named)
        error = read_folder(named, library, &path);
    else if (!read_beside(library, &path))
        error = -1;
    if (error > 0)
        output_complain("%s: %s", buf_str(&path), strerror(error));
    else if (error)
        output_complain("the libraries that draw the page, d3.min.js and plot.umd.min.js, are not "
                        "here");
    if (error) {
        output_complain("'make setup' in sunproxy's source fetches them into build/third_party, "
                        "'make install' installs them; --plot-dir or SUNPROXY_PLOT_DIR names "
                        "another folder that has both");
        report_library_free(library);
        status = EX_UNAVAILABLE;
    }
    buf_free(&path);
    return status;
}

void
report_library_free(struct report_library *library)
{
    buf_free(&library->d3);
    buf_free(&library->plot);
}
