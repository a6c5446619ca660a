# BLAKE3, the hash that is the address of everything: the system's libblake3,
# else the official C sources as distributions package them. Never another
# hash, and never silently: without it the build stops.
#
# Gives the target blake3 (headers), and for linking either BLAKE3_OBJECTS or
# BLAKE3_LINK. Our warnings are not for these sources.

set(BLAKE3_SOURCE_DIR "" CACHE PATH "folder that holds blake3.c and blake3.h")
set(BLAKE3_OBJECTS)
set(BLAKE3_LINK)

if(NOT BLAKE3_SOURCE_DIR)
    pkg_check_modules(BLAKE3 IMPORTED_TARGET libblake3>=1.3)
endif()
if(BLAKE3_FOUND)
    message(STATUS "BLAKE3: libblake3 ${BLAKE3_VERSION}")
    add_library(blake3 INTERFACE)
    target_link_libraries(blake3 INTERFACE PkgConfig::BLAKE3)
    set(BLAKE3_LINK PkgConfig::BLAKE3)
    return()
endif()

set(dir ${BLAKE3_SOURCE_DIR})
if(NOT dir)
    file(GLOB found /usr/share/cargo/registry/blake3-*/c/blake3.c)
    list(SORT found COMPARE NATURAL)
    if(found)
        list(GET found -1 newest)
        get_filename_component(dir ${newest} DIRECTORY)
    endif()
endif()
if(NOT EXISTS "${dir}/blake3.c")
    message(FATAL_ERROR "BLAKE3 is missing. Install libblake3-dev "
        "(blake3-devel, blake3) or, where there is none, librust-blake3-dev; "
        "or give -DBLAKE3_SOURCE_DIR=DIR. scripts/deps does it.")
endif()
message(STATUS "BLAKE3: sources in ${dir}")

set(files ${dir}/blake3.c ${dir}/blake3_dispatch.c ${dir}/blake3_portable.c)
set(defs)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    enable_language(ASM)
    foreach(isa sse2 sse41 avx2 avx512)
        list(APPEND files ${dir}/blake3_${isa}_x86-64_unix.S)
    endforeach()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND files ${dir}/blake3_neon.c)
    set(defs BLAKE3_USE_NEON=1)
else()
    set(defs BLAKE3_NO_SSE2 BLAKE3_NO_SSE41 BLAKE3_NO_AVX2 BLAKE3_NO_AVX512)
endif()

add_library(blake3-objects OBJECT ${files})
target_compile_definitions(blake3-objects PRIVATE ${defs})
target_compile_options(blake3-objects PRIVATE -w
    $<$<COMPILE_LANGUAGE:C>:-O3>)
set_target_properties(blake3-objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_EXTENSIONS ON)
set(BLAKE3_OBJECTS $<TARGET_OBJECTS:blake3-objects>)
add_library(blake3 INTERFACE)
target_include_directories(blake3 SYSTEM INTERFACE ${dir})
