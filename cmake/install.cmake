# make install: library, header, program, pkg-config file; man pages and
# completions come out of the program itself, so they are made when installing.

install(TARGETS ballast-static ballast-shared)
install(FILES include/ballast.h TYPE INCLUDE)
if(TARGET ballast)
    install(TARGETS ballast)
endif()

set(BAL_PC_BLAKE3)
if(BLAKE3_FOUND)
    set(BAL_PC_BLAKE3 ", libblake3")
endif()
configure_file(cmake/ballast.pc.in ballast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ballast.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE NOTICE README.md CHANGELOG.md TYPE DOC OPTIONAL)

if(TARGET ballast AND NOT CMAKE_CROSSCOMPILING)
    configure_file(cmake/generated.cmake.in generated.cmake @ONLY)
    install(SCRIPT ${PROJECT_BINARY_DIR}/generated.cmake)
endif()

# What the Python package brings with it: pip builds it through
# python/pyproject.toml.
if(BAL_PACKAGE)
    install(FILES $<TARGET_FILE:ballast-shared> DESTINATION ballast/_lib
            RENAME libballast.so COMPONENT python)
    install(PROGRAMS $<TARGET_FILE:ballast> DESTINATION ${SKBUILD_SCRIPTS_DIR}
            COMPONENT python)
    install(FILES LICENSE NOTICE DESTINATION ${SKBUILD_METADATA_DIR}/licenses
            COMPONENT python)
endif()
