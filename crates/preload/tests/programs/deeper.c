/* A thread that uses more of its stack when it is told so by a byte, and ends with the input. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int is_deep(void)
{
    volatile char frame[200000];
    for (size_t i = 0; i < sizeof frame; ++i)
        frame[i] = (char)i;
    return frame[7] == 7;
}

static int is_wrong;

static void *goes_deeper(void *argument)
{
    char byte;
    puts("begun");
    fflush(stdout);
    while (read(0, &byte, 1) == 1)
        is_wrong |= !is_deep();
    return argument;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, goes_deeper, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL) != 0 || is_wrong;
}
