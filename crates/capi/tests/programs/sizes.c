/* How C lays out the types of milieu.h: a line for each size and each place of a member. */

#include <milieu.h>
#include <stdio.h>

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define PLACE(type, member) printf("%s.%s %zu\n", #type, #member, offsetof(type, member))

int main(void) {
    SIZE(milieu_result);
    SIZE(milieu_text);
    PLACE(milieu_text, bytes);
    PLACE(milieu_text, length);
    SIZE(milieu_layer);
    PLACE(milieu_layer, id);
    PLACE(milieu_layer, value);
    PLACE(milieu_layer, inherited);
    SIZE(milieu_frame);
    SIZE(milieu_entry);
    PLACE(milieu_entry, key);
    PLACE(milieu_entry, text);
    SIZE(milieu_value);
    PLACE(milieu_value, pattern);
    PLACE(milieu_value, offset);
    PLACE(milieu_value, kind);
    PLACE(milieu_value, metadata_count);
    PLACE(milieu_value, metadata);
    SIZE(milieu_layout);
    PLACE(milieu_layout, abi);
    PLACE(milieu_layout, count);
    PLACE(milieu_layout, values);
    PLACE(milieu_layout, size);
    PLACE(milieu_layout, align);
    SIZE(milieu_options);
    PLACE(milieu_options, abi);
    PLACE(milieu_options, argument_count);
    PLACE(milieu_options, arguments);
    PLACE(milieu_options, layout);
    PLACE(milieu_options, user_folder);
    PLACE(milieu_options, system_folder);
    PLACE(milieu_options, description);
    SIZE(milieu_context_options);
    PLACE(milieu_context_options, abi);
    PLACE(milieu_context_options, policy);
    PLACE(milieu_context_options, role);
    SIZE(milieu_key);
    PLACE(milieu_key, name);
    PLACE(milieu_key, value);
    PLACE(milieu_key, origin);
    printf("results %d %d %d\n", MILIEU_SAY, MILIEU_BUSY, MILIEU_PANIC);
    printf("policies %d %d %d\n", MILIEU_WITHOUT_LAYERS, MILIEU_WITHOUT_SHARING,
        MILIEU_WITHOUT_ASSIGNMENT);
    return 0;
}
