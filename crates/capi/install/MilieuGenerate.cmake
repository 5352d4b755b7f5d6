# milieu_generate: what follows from a specification, made when the program is built.
#
#   milieu_generate(TARGET <target> SPEC <file> LANG <c|cpp> [OUT <file>] [ROOT <name>] [PROGRAM <name>])
#   milieu_generate(OUT <file> SPEC <file> LANG <language> [ROOT <name>] [PROGRAM <name>])
#
# With TARGET, the sources of the target include the header by its name, `station.hpp` for
# station.ini. It is made before any of them is compiled, and made anew when the specification or
# `milieu` has changed; a specification is one file. An INTERFACE library hands the header on.
#
# With OUT alone, the file is the output of a custom command, and is made for whoever names it
# among its sources or dependencies. LANG is then any that `milieu spec generate` has.
#
# ROOT and PROGRAM are the options of `milieu spec generate`. Relative paths are below the current
# source folder (SPEC) and the current binary folder (OUT).

function(milieu_generate)
  cmake_parse_arguments(PARSE_ARGV 0 _arg "" "TARGET;OUT;SPEC;LANG;ROOT;PROGRAM" "")
  if(DEFINED _arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "milieu_generate does not know `${_arg_UNPARSED_ARGUMENTS}`; "
      "it takes TARGET, OUT, SPEC, LANG, ROOT and PROGRAM")
  endif()
  if(DEFINED _arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "milieu_generate: `${_arg_KEYWORDS_MISSING_VALUES}` has no value")
  endif()
  foreach(_needed IN ITEMS SPEC LANG)
    if(NOT DEFINED _arg_${_needed})
      message(FATAL_ERROR "milieu_generate needs ${_needed}: "
        "milieu_generate(TARGET station SPEC station.ini LANG cpp)")
    endif()
  endforeach()
  if(NOT DEFINED _arg_TARGET AND NOT DEFINED _arg_OUT)
    message(FATAL_ERROR "milieu_generate needs TARGET, whose sources include the header, or OUT, a file")
  endif()
  if(NOT TARGET Milieu::program)
    get_property(_lacks GLOBAL PROPERTY MILIEU_PROGRAM_LACKS)
    message(FATAL_ERROR "milieu_generate: ${_lacks}")
  endif()

  get_filename_component(_spec "${_arg_SPEC}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_filename_component(_stem "${_spec}" NAME_WE)
  if(DEFINED _arg_TARGET)
    if(NOT TARGET ${_arg_TARGET})
      message(FATAL_ERROR "milieu_generate: there is no target `${_arg_TARGET}` yet; "
        "call it after add_executable or add_library")
    endif()
    if(_arg_LANG STREQUAL "c")
      set(_file "${_stem}.h")
    elseif(_arg_LANG STREQUAL "cpp")
      set(_file "${_stem}.hpp")
    else()
      message(FATAL_ERROR "milieu_generate: a target includes headers of LANG c or cpp, not `${_arg_LANG}`; "
        "for other languages name the file with OUT alone")
    endif()
    # Each target has files of its own, so that no two write one.
    set(_folder "${CMAKE_CURRENT_BINARY_DIR}/milieu/${_arg_TARGET}")
    if(DEFINED _arg_OUT)
      set(_file "${_arg_OUT}")
    endif()
    get_filename_component(_out "${_file}" ABSOLUTE BASE_DIR "${_folder}")
  else()
    get_filename_component(_out "${_arg_OUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  get_filename_component(_out_folder "${_out}" DIRECTORY)
  file(MAKE_DIRECTORY "${_out_folder}")

  set(_options --lang "${_arg_LANG}" --out "${_out}")
  if(DEFINED _arg_ROOT)
    list(APPEND _options --root "${_arg_ROOT}")
  endif()
  if(DEFINED _arg_PROGRAM)
    list(APPEND _options --program "${_arg_PROGRAM}")
  endif()
  get_target_property(_program Milieu::program IMPORTED_LOCATION)
  file(RELATIVE_PATH _shown "${CMAKE_BINARY_DIR}" "${_out}")
  add_custom_command(
    OUTPUT "${_out}"
    COMMAND "${_program}" spec generate "${_spec}" ${_options}
    DEPENDS "${_spec}" "${_program}"
    COMMENT "Generating ${_shown}"
    VERBATIM)

  if(DEFINED _arg_TARGET)
    get_filename_component(_name "${_out}" NAME)
    string(MAKE_C_IDENTIFIER "${_arg_TARGET}_${_name}" _made)
    add_custom_target(${_made} DEPENDS "${_out}")
    add_dependencies(${_arg_TARGET} ${_made})
    get_target_property(_type ${_arg_TARGET} TYPE)
    if(_type STREQUAL "INTERFACE_LIBRARY")
      target_include_directories(${_arg_TARGET} INTERFACE "${_folder}")
    else()
      target_include_directories(${_arg_TARGET} PRIVATE "${_folder}")
    endif()
  endif()
endfunction()
