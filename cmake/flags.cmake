# How everything of ours is compiled. Three interface targets:
#   bal-warn     warnings and arithmetic, for everything of ours
#   bal-source   the same for src/, where banned functions are errors
#   bal-link     what goes to the linker (and sanitizers)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COLOR_DIAGNOSTICS ON)
# Asserts stay on in every build: a store is worth more than the time they take.
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")

set(sanitizers ${BAL_SANITIZE})
if(BAL_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "fuzzing needs clang: CC=clang cmake …")
    endif()
    if(NOT sanitizers)
        set(sanitizers address,undefined)
    endif()
    string(APPEND sanitizers ",fuzzer-no-link")
endif()

add_library(bal-link INTERFACE)
if(sanitizers)
    target_compile_options(bal-link INTERFACE
        -fsanitize=${sanitizers} -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g)
    target_link_options(bal-link INTERFACE -fsanitize=${sanitizers})
else()
    target_compile_options(bal-link INTERFACE
        $<$<CONFIG:Release>:-fstack-protector-strong>
        $<$<CONFIG:Release>:-U_FORTIFY_SOURCE>
        $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
endif()
if(BAL_COVER)
    target_compile_options(bal-link INTERFACE --coverage -g)
    target_link_options(bal-link INTERFACE --coverage)
endif()
target_link_options(bal-link INTERFACE
    $<$<CONFIG:Release>:-Wl,-z,relro,-z,now>)

# Without -ffp-contract=off a compiler may fuse multiply and add where the CPU
# can, and a view would resolve to other bytes on another machine.
add_library(bal-warn INTERFACE)
target_compile_definitions(bal-warn INTERFACE
    _GNU_SOURCE BAL_VERSION="${PROJECT_VERSION}")
target_include_directories(bal-warn INTERFACE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(bal-warn INTERFACE
    -ffp-contract=off -fno-semantic-interposition
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Wundef
    -Wconversion -Wno-sign-conversion -Wformat=2 -Wdouble-promotion
    -Wno-missing-field-initializers
    $<$<BOOL:${BAL_WERROR}>:-Werror>)
target_link_libraries(bal-warn INTERFACE bal-link)

add_library(bal-source INTERFACE)
target_compile_options(bal-source INTERFACE
    "SHELL:-include ${PROJECT_SOURCE_DIR}/src/core/banned.h")
target_link_libraries(bal-source INTERFACE bal-warn)
