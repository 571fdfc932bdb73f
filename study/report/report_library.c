#include "study/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/load.h"
#include "cli/output.h"

#define MAX_FILE (16u << 20)
#define MAX_PATH 4096u

/* Where the folder is from the program's own: installed, added to a package by the administrator,
 * and in the tree that the program was built in. */
static const char *const beside[] = {"../share/sunproxy", "../local/share/sunproxy",
                                     "../third_party"};

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

/* The first of the folders beside the program's own that has both; ENOENT if none has. */
static int
read_beside(struct report_library *library, struct buf *path)
{
    char program[MAX_PATH], *slash;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    int error = ENOENT;

    if (len <= 0)
        return ENOENT;
    program[len] = '\0';
    slash = strrchr(program, '/');
    if (!slash)
        return ENOENT;
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]) && error == ENOENT; i++) {
        char folder[2 * MAX_PATH];

        snprintf(folder, sizeof(folder), "%.*s/%s", (int)(slash - program), program, beside[i]);
        error = read_folder(folder, library, path);
    }
    return error;
}

/* Says why there are no libraries, and how to get them. The exit status. */
static int
complain(int error, const struct buf *path, bool named)
{
    if (error == ENOMEM) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (named || error != ENOENT)
        output_complain("%s: %s", buf_str(path), strerror(error));
    else
        output_complain("the libraries that draw the page, d3.min.js and plot.umd.min.js, are not "
                        "here");
    output_complain("'make setup' in sunproxy's source fetches them into build/third_party, 'make "
                    "install' installs them; --plot-dir or SUNPROXY_PLOT_DIR names another folder "
                    "that has both");
    return EX_UNAVAILABLE;
}

int
report_library_read(const char *folder, struct report_library *library)
{
    const char *named = folder ? folder : getenv("SUNPROXY_PLOT_DIR");
    bool is_named = named && *named;
    struct buf path;
    int status = EX_OK, error;

    buf_init(&library->d3, MAX_FILE);
    buf_init(&library->plot, MAX_FILE);
    buf_init(&path, 2 * MAX_PATH);
    error = is_named ? read_folder(named, library, &path) : read_beside(library, &path);
    if (error) {
        status = complain(error, &path, is_named);
        report_library_free(library);
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
