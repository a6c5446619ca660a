# Numeric loops are compiled once a machine level: kernels_v3.c and kernels_v4.c
# exist on x86-64 only. dispatch.c is told which tables there are.

set(levels v3 v4)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(FILTER sources EXCLUDE REGEX "/kernel/kernels_v[34]\\.c$")
endif()
foreach(level ${levels})
    set(file ${PROJECT_SOURCE_DIR}/src/kernel/kernels_${level}.c)
    if(file IN_LIST sources)
        string(TOUPPER ${level} name)
        set_property(SOURCE ${file} APPEND PROPERTY
                     COMPILE_OPTIONS -march=x86-64-${level})
        set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/kernel/dispatch.c APPEND
                     PROPERTY COMPILE_DEFINITIONS BAL_KERNEL_${name}=1)
    endif()
endforeach()

set(fast ${sources})
list(FILTER fast INCLUDE REGEX "/src/(kernel|codec)/")
set_property(SOURCE ${fast} APPEND PROPERTY
             COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
