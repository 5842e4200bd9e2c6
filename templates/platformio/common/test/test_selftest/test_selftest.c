/* SPDX-License-Identifier: Apache-2.0 */
/* `pio test` builds this suite together with src/ (test_build_src in platformio.ini), whose main runs
 * the self-test. So the test is the very program that is flashed, and this file adds nothing to it:
 * PlatformIO wants a source in a suite. ../test_custom_runner.py reads what the program prints. */
#include "tk_selftest.h"
