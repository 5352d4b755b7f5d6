/* The cases of worlds.c that are about processes: children, other programs, and what they may. */

static void ended_with(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status))
        printf("child: exit %d\n", WEXITSTATUS(status));
    else
        printf("child: signal %d\n", WTERMSIG(status));
    fflush(stdout);
}

static void *forks(void *argument)
{
    pid_t child = fork();
    (void)argument;
    if (child == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, exits_deeply, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        _exit(3);
    }
    ended_with(child);
    return NULL;
}

static void forked(void)
{
    pthread_t thread;
    pid_t child;
    CHECK(pthread_create(&thread, NULL, forks, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    forks(NULL);
    /* A thread's child that exits as programs do. */
    fflush(stdout);
    if ((child = fork()) == 0)
        exit(4);
    ended_with(child);
}

/* A child of which the C library knows nothing. */
static void forked_by_hand(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        pthread_t thread;
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        CHECK(pthread_create(&thread, NULL, exits_deeply, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        exit(5);
    }
    ended_with(child);
}

static char *arguments[8];

static void *spawns(void *how)
{
    extern char **environ;
    pid_t child = -1;
    switch ((intptr_t)how) {
    case 0:
        child = fork();
        if (child == 0) {
            execv(*arguments, arguments);
            _exit(98);
        }
        break;
    case 1:
        CHECK(posix_spawn(&child, *arguments, NULL, NULL, arguments, environ) == 0);
        break;
    case 2:
        child = vfork();
        if (child == 0) {
            execvp(*arguments, arguments);
            _exit(98);
        }
        break;
    default: {
        char command[4200];
        char text[200];
        size_t length = 0;
        for (char **it = arguments; *it; ++it)
            length += (size_t)snprintf(command + length, sizeof command - length, " '%s'", *it);
        CHECK(system(command) == 0);
        FILE *pipe = popen(command, "r");
        CHECK(pipe && fgets(text, sizeof text, pipe));
        fputs(text, stdout);
        fflush(stdout);
        CHECK(pclose(pipe) == 0);
        return NULL;
    }
    }
    ended_with(child);
    return NULL;
}

static void begin_others(void)
{
    for (intptr_t how = 0; how < 4; ++how) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, spawns, (void *)how) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void other_programs(void)
{
    arguments[0] = (char *)self;
    arguments[1] = "priorities";
    begin_others();
}

/* How long others may run in real time is not what threads here may. */
static void limits(void)
{
    /* Whoever is served has a limit of its own. */
    static char *prints_limit[] = { "/usr/bin/env", "-u", "LD_PRELOAD", "grep", "realtime timeout",
        "/proc/self/limits" };
    pthread_t thread;
    /* A program is mediated from its first thread on. */
    CHECK(pthread_create(&thread, NULL, twice, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < sizeof prints_limit / sizeof *prints_limit; ++i)
        arguments[i] = prints_limit[i];
    begin_others();
    CHECK(execv("/nowhere", arguments) == -1 && errno == ENOENT);
    execv(*arguments, arguments);
}

static volatile sig_atomic_t was_told;

static void is_told(int signal)
{
    (void)signal;
    was_told = 1;
}

static void *runs_in_real_time(void *argument)
{
    struct sched_param first = { 1 };
    struct timespec begun, now;
    (void)argument;
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0)
        return "no real time";
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (!was_told && now.tv_sec - begun.tv_sec < 4);
    return was_told ? "told" : "not told";
}

/* How long the program's own threads may run in real time is what it has said. */
static void own_limits(void)
{
    struct rlimit limit, before, wrong = { 5, 4 };
    pthread_t thread;
    void *said;
    CHECK(signal(SIGXCPU, is_told) != SIG_ERR);
    CHECK(pthread_create(&thread, NULL, twice, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(getrlimit(RLIMIT_RTTIME, &before) == 0);
    printf("%llx of %llx\n", (long long)before.rlim_cur, (long long)before.rlim_max);
    CHECK(setrlimit(RLIMIT_RTTIME, &wrong) == -1 && errno == EINVAL);
    /* Before and after what is usual for critical threads. */
    for (int i = 0; i < 2; ++i) {
        limit = before;
        limit.rlim_cur = i == 0 ? 50000 : 700000;
        CHECK((i == 0 ? setrlimit(RLIMIT_RTTIME, &limit)
                      : prlimit(getpid(), RLIMIT_RTTIME, &limit, NULL)) == 0);
        limit.rlim_cur = 1;
        CHECK(prlimit(0, RLIMIT_RTTIME, NULL, &limit) == 0);
        printf("%llx of %llx\n", (long long)limit.rlim_cur, (long long)limit.rlim_max);
        was_told = 0;
        CHECK(pthread_create(&thread, NULL, runs_in_real_time, NULL) == 0);
        CHECK(pthread_join(thread, &said) == 0);
        puts(said);
        /* The kernel has put it off. */
        CHECK(setrlimit(RLIMIT_RTTIME, &before) == 0);
    }
    CHECK(getrlimit(RLIMIT_RTTIME, &limit) == 0);
    printf("%llx of %llx\n", (long long)limit.rlim_cur, (long long)limit.rlim_max);
}

static void *becomes_another(void *argument)
{
    char *arguments[] = { (char *)self, "priorities", NULL };
    (void)argument;
    execv(self, arguments);
    CHECK(0);
    return NULL;
}

static void another_program(void)
{
    pthread_t thread;
    CHECK(execl("/nowhere", "nowhere", (char *)NULL) == -1 && errno == ENOENT);
    CHECK(pthread_create(&thread, NULL, becomes_another, NULL) == 0);
    pthread_join(thread, NULL);
}

/* Programs whose arguments are listed, more of them than there are registers: each of these
 * cases begins the next one. */

static void priorities(void);

static void shows_arguments(void)
{
    const char *told = getenv("TOLD");
    for (int i = 2; given[i] != NULL; ++i)
        printf("%s ", given[i]);
    puts(told == NULL ? "" : told);
    priorities();
}

static void *lists(void *argument)
{
    char *variables[] = { "TOLD=yes", NULL };
    (void)argument;
    if (strcmp(given[1], "listed") == 0)
        execl(self, self, "named", (char *)NULL);
    else if (strcmp(given[1], "named") == 0)
        execlp(self, self, "with-variables", "a", "b", "c", "d", "e", "f", "g", "h", (char *)NULL);
    else
        execle(self, self, "last", "1", "2", "3", "4", "5", (char *)NULL, variables);
    CHECK(0);
    return NULL;
}

static void listed(void)
{
    char *variables[] = { "TOLD=yes", NULL };
    pthread_t thread;
    CHECK(execl("/nowhere", "nowhere", (char *)NULL) == -1 && errno == ENOENT);
    CHECK(execlp("/nowhere", "a", "b", "c", "d", "e", "f", "g", (char *)NULL) == -1);
    CHECK(errno == ENOENT);
    CHECK(execle("/nowhere", "a", "b", (char *)NULL, variables) == -1 && errno == ENOENT);
    shows_arguments();
    CHECK(pthread_create(&thread, NULL, lists, NULL) == 0);
    pthread_join(thread, NULL);
}
