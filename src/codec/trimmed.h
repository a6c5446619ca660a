/* Inside codec/ only: what the choice asks of the trimmed codec. */
#ifndef CODEC_TRIMMED_H
#define CODEC_TRIMMED_H

#include "codec/coder.h"

/* Bytes that F32 elements would take, about, judged by so many of them. */
uint64_t bal_trimmed_guess(bal_coder *coder, bal_bytes from, size_t samples);

#endif
