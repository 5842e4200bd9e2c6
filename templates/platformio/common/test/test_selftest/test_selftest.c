/* SPDX-License-Identifier: Apache-2.0 */
/* `pio test` builds this suite together with src/ (test_build_src in platformio.ini), whose main runs
 * the self-test. So it tests the program that is flashed. This file is empty because PlatformIO needs
 * a source in a suite. ../test_custom_runner.py reads the output of the program. */
#include "tk_selftest.h"
