/* python/ballast/peft_runner.py, embedded when the library is built. */
#ifndef PROBE_PEFT_SCRIPT_H
#define PROBE_PEFT_SCRIPT_H

extern const char bal_peft_script[];

#endif
