# Tests, found by pattern. Labels: unit contract cli python fuzz torture races
# crash golden peers; `make check` runs the first five.
#
#   tests/unit/test_*.c, tests/contract/test_*.c   one cmocka program each
#   tests/cli/test_*.py                            pytest on the program, and on
#   tests/cli/*.c                                  small ones of the library
#   tests/fuzz/fuzz_*.c                            replay of a corpus, or libFuzzer
#   tests/torture/torture_*.c                      faults injected by the linker,
#                                                  two at work on one store
#   tests/golden/merge_*.c                         merges of other programs
#   tests/{torture,golden,peers}/*.py              pytest, when asked for

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka>=1.1.5)
find_program(BAL_PYTHON NAMES python3)

add_custom_target(tests DEPENDS programs)
if(NOT CMOCKA_FOUND)
    message(STATUS "no cmocka: the tests are left out")
    add_custom_target(no-cmocka
        COMMAND ${CMAKE_COMMAND} -E echo "cmocka is missing: scripts/deps test"
        COMMAND ${CMAKE_COMMAND} -E false)
    add_dependencies(tests no-cmocka)
    return()
endif()

set(dir ${PROJECT_SOURCE_DIR}/tests)
set(environment
    "BALLAST_TREE=${PROJECT_SOURCE_DIR}"
    "BALLAST_BUILD=${PROJECT_BINARY_DIR}"
    "PYTHONDONTWRITEBYTECODE=1"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
if(TARGET ballast)
    list(APPEND environment "BALLAST=$<TARGET_FILE:ballast>")
endif()

# gcc 12's ThreadSanitizer cannot live with the address space layout of newer
# kernels.
set(launcher)
find_program(BAL_SETARCH setarch)
if(BAL_SANITIZE MATCHES thread AND BAL_SETARCH)
    set(launcher ${BAL_SETARCH} -R)
endif()

# What several test programs share; an archive, so each takes what it uses.
file(GLOB support CONFIGURE_DEPENDS ${dir}/support/*.c)
list(FILTER support EXCLUDE REGEX "/fuzz_main\\.c$")
add_library(bal-test INTERFACE)
target_include_directories(bal-test INTERFACE ${dir})
target_include_directories(bal-test SYSTEM INTERFACE ${LIBPQ_INCLUDE_DIRS})
target_link_libraries(bal-test INTERFACE bal-warn ballast-program blake3
                      PkgConfig::CMOCKA)
if(support)
    add_library(support STATIC ${support})
    target_link_libraries(support PRIVATE bal-test)
endif()

function(bal_test_program name)
    add_executable(${name} ${ARGN})
    if(TARGET support)
        target_link_libraries(${name} PRIVATE support)
    endif()
    target_link_libraries(${name} PRIVATE bal-test)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(tests ${name})
endfunction()

function(bal_test name label)
    add_test(NAME ${name} COMMAND ${launcher} ${ARGN}
             WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES
        LABELS "${label}" TIMEOUT 1200 ENVIRONMENT "${environment}")
endfunction()

function(bal_pytests label)
    file(GLOB files CONFIGURE_DEPENDS ${ARGN})
    foreach(file ${files})
        get_filename_component(name ${file} NAME_WE)
        string(REGEX REPLACE "^test_" "" name ${name})
        bal_test(${label}-${name} ${label} ${BAL_PYTHON} -m pytest -q
                 -p no:cacheprovider ${file})
    endforeach()
endfunction()

foreach(label unit contract)
    file(GLOB files CONFIGURE_DEPENDS ${dir}/${label}/test_*.c)
    foreach(file ${files})
        get_filename_component(name ${file} NAME_WE)
        string(REGEX REPLACE "^test_" "${label}-" name ${name})
        bal_test_program(${name} ${file})
        bal_test(${name} ${label} $<TARGET_FILE:${name}>)
    endforeach()
endforeach()

# ---- an S3 server, for as long as a test runs that asks for it ------------------

set(server ${dir}/support/s3-server)
foreach(verb up down)
    bal_test(s3-${verb} fixture ${BAL_PYTHON} ${server} ${verb}
             ${PROJECT_BINARY_DIR}/s3)
endforeach()
set_tests_properties(s3-up PROPERTIES FIXTURES_SETUP s3)
set_tests_properties(s3-down PROPERTIES FIXTURES_CLEANUP s3)
set_tests_properties(contract-backend contract-backend_remove
                     PROPERTIES FIXTURES_REQUIRED s3)

# The graph once more, on PostgreSQL where there is one.
foreach(name dependents forgets grants graph graph_recent journal proof_rows
             refs)
    bal_test(postgresql-${name} contract ${CMAKE_COMMAND} -E env
             BALLAST_TEST_DB=postgresql $<TARGET_FILE:unit-${name}>)
endforeach()

# ---- what tests/cli runs beside the program: parts of the library by argv ------

file(GLOB files CONFIGURE_DEPENDS ${dir}/cli/*.c)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REPLACE "_" "-" name ${name})
    bal_test_program(${name} ${file})
endforeach()

# The program once more, its stores' graph in PostgreSQL and their blocks in S3.
foreach(name commands forget grants merge)
    bal_test(remote-${name} remote ${CMAKE_COMMAND} -E env
             BALLAST_TEST_DB=postgresql
             BALLAST_TEST_S3=${PROJECT_BINARY_DIR}/s3
             ${BAL_PYTHON} -m pytest -q -p no:cacheprovider
             ${dir}/cli/test_${name}.py)
    set_tests_properties(remote-${name} PROPERTIES FIXTURES_REQUIRED s3)
endforeach()

# ---- torture: torture_x*.c takes x.c and x_*.c; __wrap_y defined in one of them
# asks the linker to wrap y. What runs in threads is labelled races, too.

file(GLOB torture CONFIGURE_DEPENDS ${dir}/torture/*.c)
set(sources ${torture})
list(FILTER torture INCLUDE REGEX "/torture_[a-z0-9_]+\\.c$")
foreach(file ${torture})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^torture_([a-z0-9]+).*" "\\1" short ${name})
    set(label torture)
    if(short STREQUAL "races")
        list(APPEND label races)
    endif()
    set(shared ${sources})
    list(FILTER shared INCLUDE REGEX "/${short}(_[a-z0-9_]+)?\\.c$")
    string(REPLACE "_" "-" name ${name})
    bal_test_program(${name} ${file} ${shared})
    set(wraps)
    foreach(source ${file} ${shared})
        file(STRINGS ${source} lines REGEX "__wrap_[a-z0-9_]+\\(")
        foreach(line ${lines})
            string(REGEX MATCH "__wrap_([a-z0-9_]+)\\(" _ "${line}")
            list(APPEND wraps ${CMAKE_MATCH_1})
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES wraps)
    foreach(function ${wraps})
        target_link_options(${name} PRIVATE -Wl,--wrap=${function})
    endforeach()
    bal_test(${name} "${label}" $<TARGET_FILE:${name}>)
endforeach()

# ---- fuzz: the same targets under libFuzzer, or replayed by any compiler -----

file(GLOB files CONFIGURE_DEPENDS ${dir}/fuzz/fuzz_*.c)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" short ${name})
    if(BAL_FUZZ)
        bal_test_program(fuzz-${short} ${file})
        target_link_options(fuzz-${short} PRIVATE -fsanitize=fuzzer)
        continue()
    endif()
    bal_test_program(fuzz-replay-${short} ${file} ${dir}/support/fuzz_main.c)
    bal_test(fuzz-replay-${short} fuzz $<TARGET_FILE:fuzz-replay-${short}>
             ${dir}/fuzz/corpus/${short})
endforeach()

# ---- golden: what other programs make of a merge; again with tiles of another
# size, which must not show -----------------------------------------------------

file(GLOB files CONFIGURE_DEPENDS ${dir}/golden/*.c)
bal_test_program(merge-golden ${files})
bal_test(golden-merge golden $<TARGET_FILE:merge-golden>)
bal_test(golden-merge-tiles golden ${CMAKE_COMMAND} -E env BAL_TILE=16
         $<TARGET_FILE:merge-golden>)

# ---- the example: a program that knows the public header and the .so alone ---

add_executable(embed ${PROJECT_SOURCE_DIR}/examples/embed.c)
target_link_libraries(embed PRIVATE bal-warn ballast-shared)
set_target_properties(embed PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_dependencies(tests embed)

# ---- measuring ---------------------------------------------------------------

file(GLOB files CONFIGURE_DEPENDS ${dir}/bench/*.c)
foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^bench_" "" name ${name})
    bal_test_program(bench-${name} ${file})
endforeach()

if(BAL_PYTHON AND TARGET ballast)
    bal_pytests(cli ${dir}/cli/test_*.py)
    set_tests_properties(cli-s3 PROPERTIES FIXTURES_REQUIRED s3)
    bal_pytests(torture ${dir}/torture/test_*.py)
    if(EXISTS ${dir}/torture/crash.py)
        bal_test(crash crash ${BAL_PYTHON} ${dir}/torture/crash.py)
    endif()
    bal_pytests(golden ${dir}/golden/test_*.py)
endif()

# The Python package on the library that was just built. An interpreter has no
# sanitizer's runtime: AddressSanitizer's, of gcc, can be loaded before it, the
# others cannot. It then watches what Python allocates, too; leaks are for
# conftest.py to look at, for an interpreter never frees all of its own.
set(python_tests ON)
if(BAL_SANITIZE)
    set(python_tests OFF)
endif()
if(BAL_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
                    OUTPUT_VARIABLE asan OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(IS_ABSOLUTE "${asan}")
        set(python_tests ON)
        list(TRANSFORM environment APPEND ":leak_check_at_exit=0"
             REGEX "^ASAN_OPTIONS=")
        # A report goes past pytest, which does not survive it.
        list(APPEND environment "PYTHONMALLOC=malloc"
             "PYTEST_ADDOPTS=--capture=sys")
        set(launcher ${CMAKE_COMMAND} -E env "LD_PRELOAD=${asan}")
    endif()
endif()
if(BAL_PYTHON AND TARGET ballast AND python_tests)
    list(APPEND environment "BALLAST_LIBRARY=$<TARGET_FILE:ballast-shared>"
         "PYTHONPATH=${PROJECT_SOURCE_DIR}/python")
    bal_pytests(python ${dir}/python/test_*.py)
    # As many rounds as `make torture` is told, where `make check` takes fewer.
    bal_pytests(torture ${dir}/python/test_leaks.py)
endif()
