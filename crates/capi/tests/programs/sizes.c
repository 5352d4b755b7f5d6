/* How C lays out the types of milieu.h: a line for each size and each place of a member. */

#include <milieu.h>
#ifdef STREAMS
#include <milieu/streams.h>
#endif
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
    SIZE(milieu_change);
    PLACE(milieu_change, name);
    PLACE(milieu_change, before);
    PLACE(milieu_change, after);
    PLACE(milieu_change, origin);
    PLACE(milieu_change, secret);
    SIZE(milieu_news);
    PLACE(milieu_news, kind);
    PLACE(milieu_news, changes);
    PLACE(milieu_news, count);
    PLACE(milieu_news, message);
#ifdef STREAMS
    SIZE(milieu_streams_options);
    PLACE(milieu_streams_options, abi);
    PLACE(milieu_streams_options, virtual_time);
    PLACE(milieu_streams_options, now_ns);
    SIZE(milieu_event_field);
    PLACE(milieu_event_field, name);
    PLACE(milieu_event_field, offset);
    PLACE(milieu_event_field, kind);
    PLACE(milieu_event_field, metadata_count);
    PLACE(milieu_event_field, metadata);
    PLACE(milieu_event_field, layout);
    SIZE(milieu_event_layout);
    PLACE(milieu_event_layout, abi);
    PLACE(milieu_event_layout, count);
    PLACE(milieu_event_layout, name);
    PLACE(milieu_event_layout, fields);
    PLACE(milieu_event_layout, size);
    PLACE(milieu_event_layout, align);
    SIZE(milieu_quality);
    PLACE(milieu_quality, time_ns);
    PLACE(milieu_quality, age_ns);
    PLACE(milieu_quality, accuracy);
    PLACE(milieu_quality, failure);
    SIZE(milieu_header);
    PLACE(milieu_header, name);
    PLACE(milieu_header, origin);
    PLACE(milieu_header, incarnation);
    PLACE(milieu_header, sequence);
    PLACE(milieu_header, quality);
    SIZE(milieu_datum);
    PLACE(milieu_datum, kind);
    PLACE(milieu_datum, content);
    SIZE(milieu_delivery);
    PLACE(milieu_delivery, abi);
    PLACE(milieu_delivery, capacity);
    PLACE(milieu_delivery, overflow);
    SIZE(milieu_tally);
    PLACE(milieu_tally, taken);
    PLACE(milieu_tally, dropped);
    PLACE(milieu_tally, waiting);
    SIZE(milieu_attribute);
    PLACE(milieu_attribute, name);
    PLACE(milieu_attribute, value);
    SIZE(milieu_service);
    PLACE(milieu_service, abi);
    PLACE(milieu_service, attribute_count);
    PLACE(milieu_service, attributes);
    PLACE(milieu_service, endpoint);
    PLACE(milieu_service, until_ns);
    SIZE(milieu_name_change);
    PLACE(milieu_name_change, name);
    PLACE(milieu_name_change, change);
    PLACE(milieu_name_change, kind);
    PLACE(milieu_name_change, endpoint);
    PLACE(milieu_name_change, attributes);
    PLACE(milieu_name_change, attribute_count);
    PLACE(milieu_name_change, targets);
    PLACE(milieu_name_change, target_count);
    SIZE(milieu_parameter);
    PLACE(milieu_parameter, name);
    PLACE(milieu_parameter, kind);
    PLACE(milieu_parameter, choice_count);
    PLACE(milieu_parameter, choices);
    PLACE(milieu_parameter, otherwise);
    PLACE(milieu_parameter, summary);
    PLACE(milieu_parameter, positional);
    SIZE(milieu_operator);
    PLACE(milieu_operator, abi);
    PLACE(milieu_operator, inputs);
    PLACE(milieu_operator, flags);
    PLACE(milieu_operator, parameter_count);
    PLACE(milieu_operator, name);
    PLACE(milieu_operator, summary);
    PLACE(milieu_operator, parameters);
    PLACE(milieu_operator, make);
    PLACE(milieu_operator, step);
    PLACE(milieu_operator, wake);
    PLACE(milieu_operator, save);
    PLACE(milieu_operator, restore);
    PLACE(milieu_operator, free);
#endif
    printf("results %d %d %d\n", MILIEU_SAY, MILIEU_BUSY, MILIEU_PANIC);
    printf("policies %d %d %d\n", MILIEU_WITHOUT_LAYERS, MILIEU_WITHOUT_SHARING,
        MILIEU_WITHOUT_ASSIGNMENT);
#ifdef STREAMS
    printf("streams %d %d %d %lld\n", MILIEU_ENDED, MILIEU_REFUSED, MILIEU_SYSTEM,
        (long long)MILIEU_NOW);
    printf("kinds %d %d %d\n", MILIEU_I8, MILIEU_BYTES, MILIEU_JSON);
    printf("kinds %d %d %d\n", MILIEU_STRUCT, MILIEU_EXPRESSION, MILIEU_OPTIONAL);
#endif
    return 0;
}
