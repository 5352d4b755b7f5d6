/*
 * With `begin` and a path, begins that program in each of the ways there are; otherwise it
 * says what is loaded before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern char **environ;

static const char *const ways[] = { "execv", "execve", "execvp", "execvpe", "fexecve", "vfork",
    "posix_spawn", "posix_spawnp", "system" };

static void become(const char *how, char *path, char **arguments)
{
    if (strcmp(how, "execv") == 0)
        execv(path, arguments);
    else if (strcmp(how, "execvp") == 0)
        execvp(*arguments, arguments);
    else if (strcmp(how, "execvpe") == 0)
        execvpe(*arguments, arguments, environ);
    else if (strcmp(how, "fexecve") == 0)
        fexecve(open(path, O_RDONLY), arguments, environ);
    else
        execve(path, arguments, environ);
    _exit(98);
}

/* Its path is absolute, and its folder the only one in which programs are looked for. */
static void begin(const char *how, char *path)
{
    char *arguments[] = { strrchr(path, '/') + 1, NULL };
    pid_t child = -1;
    int status = -1;
    printf("%s: ", how);
    fflush(stdout);
    if (strcmp(how, "system") == 0)
        status = system(path);
    else if (strcmp(how, "posix_spawn") == 0)
        CHECK(posix_spawn(&child, path, NULL, NULL, arguments, environ) == 0);
    else if (strcmp(how, "posix_spawnp") == 0)
        CHECK(posix_spawnp(&child, *arguments, NULL, NULL, arguments, environ) == 0);
    else if (strcmp(how, "vfork") == 0) {
        if ((child = vfork()) == 0) {
            execve(path, arguments, environ);
            _exit(98);
        }
    } else if ((child = fork()) == 0)
        become(how, path, arguments);
    if (child > 0)
        CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

int main(int number, char **arguments)
{
    char folder[4096];
    if (number != 3 || strcmp(arguments[1], "begin") != 0) {
        const char *before = getenv("LD_PRELOAD");
        puts(before ? before : "nothing");
        return 0;
    }
    CHECK(strlen(arguments[2]) < sizeof folder);
    strcpy(folder, arguments[2]);
    *strrchr(folder, '/') = '\0';
    CHECK(setenv("PATH", folder, 1) == 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i)
        begin(ways[i], arguments[2]);
    CHECK(execve("/nowhere", arguments, environ) == -1 && errno == ENOENT);
    CHECK(execvp("nowhere", arguments) == -1 && errno == ENOENT);
    return 0;
}
