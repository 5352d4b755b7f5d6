/* How test programs use their stacks. */
#ifndef DEPTH_H
#define DEPTH_H

/* Goes so many levels deep, of about 1 KB each, and returns how many. */
static int depth_of(int levels)
{
    volatile char frame[1000];
    frame[0] = (char)levels;
    frame[999] = frame[0];
    return levels == 0 ? 0 : 1 + depth_of(levels - 1) + (frame[999] != frame[0]);
}

#endif
