# Numeric loops are compiled once a machine level: kernels_v3.c and kernels_v4.c,
# and codec/'s loops_v3.c and loops_v4.c, exist on x86-64 only. Each dispatch.c is
# told which tables there are.

set(levels v3 v4)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(FILTER sources EXCLUDE REGEX "/(kernel/kernels|codec/loops)_v[34]\\.c$")
endif()
foreach(level ${levels})
    foreach(table kernel/kernels codec/loops)
        set(file ${PROJECT_SOURCE_DIR}/src/${table}_${level}.c)
        if(NOT file IN_LIST sources)
            continue()
        endif()
        get_filename_component(folder ${file} DIRECTORY)
        string(REGEX REPLACE ".*/" "" name ${table}_${level})
        string(REPLACE "kernels" "kernel" name ${name})
        string(TOUPPER ${name} name)
        set_property(SOURCE ${file} APPEND PROPERTY
                     COMPILE_OPTIONS -march=x86-64-${level})
        set_property(SOURCE ${folder}/dispatch.c APPEND
                     PROPERTY COMPILE_DEFINITIONS BAL_${name}=1)
    endforeach()
endforeach()

set(fast ${sources})
list(FILTER fast INCLUDE REGEX "/src/(kernel|codec)/")
set_property(SOURCE ${fast} APPEND PROPERTY
             COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
