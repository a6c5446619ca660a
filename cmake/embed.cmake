# A file's bytes as a C array with a NUL behind them, made anew when it changes:
#   bal_embed(SYMBOL HEADER FILE)   appends the source to BAL_EMBEDDED
# Run as a script (-P) it writes OUT.
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ "${FILE}" hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
           "\\1\n" bytes "${bytes}")
    file(WRITE "${OUT}" "#include \"${HEADER}\"\n\n"
         "const char ${SYMBOL}[] = {\n${bytes}0\n};\n")
    return()
endif()

set(BAL_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(bal_embed symbol header file)
    set(out ${PROJECT_BINARY_DIR}/embedded/${symbol}.c)
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DSYMBOL=${symbol} -DHEADER=${header}
                -DFILE=${file} -DOUT=${out} -P ${BAL_EMBED_SCRIPT}
        DEPENDS ${file} ${BAL_EMBED_SCRIPT}
        COMMENT "Embedding ${symbol}" VERBATIM)
    set(BAL_EMBEDDED ${BAL_EMBEDDED} ${out} PARENT_SCOPE)
endfunction()
