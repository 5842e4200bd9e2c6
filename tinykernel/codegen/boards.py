"""The table of boards: PlatformIO's names for them, their core and memory.

Versions of platforms are pinned in ``templates/platformio/format.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_KILOBYTE = 1024


@dataclass(frozen=True)
class Board:
    """A board that can be bought."""

    name: str  # PlatformIO's board identifier; empty for a platform without boards.
    platform: str  # empty where PlatformIO's registry has none with this board.
    # For which a project can be exported, the default one first; "none" is for this computer.
    frameworks: tuple[str, ...]
    title: str  # what is printed on the box.
    target: str = ""  # its core; empty for a board that only the user knows.
    flash: int = 0  # bytes that a program may use; 0 where that is not known.
    ram: int = 0
    clock: int = 0  # hertz, the usual one.


# A target; then a line a board: name, platform, frameworks, KB of flash, KB of RAM, MHz, title.
_TABLE = """\
cortex-m0
  nucleo_f072rb ststm32 arduino,cmsis,stm32cube 128 16 48 ST Nucleo F072RB
  nucleo_f030r8 ststm32 arduino,cmsis,stm32cube 64 8 48 ST Nucleo F030R8
  bbcmicrobit nordicnrf51 arduino 256 16 16 BBC micro:bit V1
  nucleo_f042k6 ststm32 arduino,cmsis,stm32cube 32 6 48 ST Nucleo F042K6
  nucleo_f091rc ststm32 arduino,cmsis,stm32cube 256 32 48 ST Nucleo F091RC
  disco_f072rb ststm32 arduino,cmsis,stm32cube 128 16 48 ST Discovery F072RB
cortex-m0plus
  nucleo_l053r8 ststm32 arduino,cmsis,stm32cube 64 8 32 ST Nucleo L053R8
  zeroUSB atmelsam arduino 256 32 48 Arduino Zero (USB)
  pico raspberrypi arduino 2048 264 133 Raspberry Pi Pico (RP2040)
  zero atmelsam arduino 256 32 48 Arduino Zero (debug port)
  seeed_xiao atmelsam arduino 256 32 48 Seeed XIAO SAMD21
  nano_33_iot atmelsam arduino 256 32 48 Arduino Nano 33 IoT
  mkrzero atmelsam arduino 256 32 48 Arduino MKR Zero
  mkrwifi1010 atmelsam arduino 256 32 48 Arduino MKR WiFi 1010
  adafruit_feather_m0 atmelsam arduino 256 32 48 Adafruit Feather M0
  nucleo_l031k6 ststm32 arduino,cmsis,stm32cube 32 8 32 ST Nucleo L031K6
  nucleo_l073rz ststm32 arduino,cmsis,stm32cube 192 20 32 ST Nucleo L073RZ
  nucleo_g071rb ststm32 arduino,cmsis,stm32cube 128 36 64 ST Nucleo G071RB
  teensylc teensy arduino 62 8 48 Teensy LC
cortex-m3
  bluepill_f103c8 ststm32 arduino,cmsis,stm32cube,zephyr 64 20 72 Blue Pill F103C8
  nucleo_f103rb ststm32 arduino,cmsis,stm32cube,zephyr 128 20 72 ST Nucleo F103RB
  nucleo_l152re ststm32 arduino,cmsis,stm32cube,zephyr 512 80 32 ST Nucleo L152RE
  disco_l152rb ststm32 arduino,cmsis,stm32cube,zephyr 128 16 32 ST Discovery L152RB
  genericSTM32F103C8 ststm32 arduino,stm32cube 64 20 72 STM32F103C8 boards
  maple_mini_origin ststm32 arduino,stm32cube 108 17 72 Maple Mini
  due atmelsam arduino 512 96 84 Arduino Due
cortex-m4
  nucleo_f401re ststm32 arduino,cmsis,stm32cube,zephyr 512 96 84 ST Nucleo F401RE
  nrf52840_dk nordicnrf52 arduino,zephyr 1024 256 64 Nordic nRF52840-DK
  nucleo_f411re ststm32 arduino,cmsis,stm32cube,zephyr 512 128 100 ST Nucleo F411RE
  nucleo_f446re ststm32 arduino,cmsis,stm32cube,zephyr 512 128 180 ST Nucleo F446RE
  nucleo_l476rg ststm32 arduino,cmsis,stm32cube,zephyr 1024 96 80 ST Nucleo L476RG
  nucleo_f303k8 ststm32 arduino,cmsis,stm32cube,zephyr 64 12 72 ST Nucleo F303K8
  nucleo_f429zi ststm32 arduino,cmsis,stm32cube,zephyr 2048 192 180 ST Nucleo F429ZI
  disco_f407vg ststm32 arduino,cmsis,stm32cube,zephyr 1024 128 168 ST Discovery F407VG
  disco_l475vg_iot01a ststm32 arduino,cmsis,stm32cube,zephyr 1024 96 80 ST IoT node L475
  blackpill_f401cc ststm32 arduino,cmsis,stm32cube 256 64 84 Black Pill F401CC
  blackpill_f411ce ststm32 arduino,cmsis,stm32cube 512 128 100 Black Pill F411CE
  nucleo_g431kb ststm32 arduino,cmsis,stm32cube 128 22 170 ST Nucleo G431KB
  nano33ble nordicnrf52 arduino 960 256 64 Arduino Nano 33 BLE (nRF52840)
  adafruit_feather_nrf52840 nordicnrf52 arduino 796 238 64 Adafruit Feather nRF52840
  nrf52_dk nordicnrf52 arduino,zephyr 512 64 64 Nordic nRF52-DK (nRF52832)
  bbcmicrobit_v2 nordicnrf52 arduino 512 128 64 BBC micro:bit V2
  xiaoblesense nordicnrf52 arduino 796 232 64 Seeed XIAO nRF52840 Sense
  adafruit_feather_m4 atmelsam arduino 496 192 120 Adafruit Feather M4
  adafruit_metro_m4 atmelsam arduino 496 192 120 Adafruit Metro M4
  teensy31 teensy arduino 256 64 72 Teensy 3.1 and 3.2
  teensy36 teensy arduino 1024 256 180 Teensy 3.6
cortex-m7
  nucleo_f767zi ststm32 arduino,cmsis,stm32cube,zephyr 2048 512 216 ST Nucleo F767ZI
  teensy41 teensy arduino 7936 512 600 Teensy 4.1
  nucleo_f746zg ststm32 arduino,cmsis,stm32cube,zephyr 1024 320 216 ST Nucleo F746ZG
  nucleo_h743zi ststm32 arduino,cmsis,stm32cube,zephyr 2048 512 400 ST Nucleo H743ZI
  disco_f746ng ststm32 arduino,cmsis,stm32cube,zephyr 1024 320 216 ST Discovery F746NG
  teensy40 teensy arduino 1984 512 600 Teensy 4.0
cortex-m33
  nucleo_l552ze_q ststm32 arduino,cmsis,stm32cube 512 192 110 ST Nucleo L552ZE-Q
  nucleo_u575zi_q ststm32 arduino 2048 768 160 ST Nucleo U575ZI-Q
  rpipico2 - arduino 4096 512 150 Raspberry Pi Pico 2 (RP2350, M33)
esp32
  esp32dev espressif32 arduino,espidf 4096 320 240 Espressif ESP32 Dev Module
  lolin32 espressif32 arduino,espidf 4096 320 240 WEMOS LOLIN32
  nodemcu-32s espressif32 arduino,espidf 4096 320 240 NodeMCU-32S
  esp32cam espressif32 arduino,espidf 4096 320 240 AI Thinker ESP32-CAM
  featheresp32 espressif32 arduino,espidf 4096 320 240 Adafruit Feather ESP32
  esp-wrover-kit espressif32 arduino,espidf 4096 320 240 Espressif ESP-WROVER-KIT
  m5stack-core-esp32 espressif32 arduino,espidf 4096 320 240 M5Stack Core ESP32
  wemos_d1_mini32 espressif32 arduino,espidf 4096 320 240 WEMOS D1 MINI ESP32
  az-delivery-devkit-v4 espressif32 arduino,espidf 4096 320 240 AZ-Delivery ESP-32 v4
esp32s3
  esp32-s3-devkitc-1 espressif32 arduino,espidf 8192 320 240 Espressif ESP32-S3-DevKitC-1
  lolin_s3 espressif32 arduino,espidf 16384 320 240 WEMOS LOLIN S3
  adafruit_feather_esp32s3 espressif32 arduino,espidf 4096 320 240 Adafruit Feather ESP32-S3
  esp32-s2-saola-1 espressif32 arduino,espidf 4096 320 240 Espressif ESP32-S2-Saola-1 (also an LX7)
esp32c3
  esp32-c3-devkitm-1 espressif32 arduino,espidf 4096 320 160 Espressif ESP32-C3-DevKitM-1
  esp32-c3-devkitc-02 espressif32 arduino,espidf 4096 320 160 Espressif ESP32-C3-DevKitC-02
  lolin_c3_mini espressif32 arduino,espidf 4096 320 160 WEMOS LOLIN C3 Mini
  seeed_xiao_esp32c3 espressif32 arduino,espidf 4096 320 160 Seeed XIAO ESP32C3
  esp32-c6-devkitc-1 espressif32 espidf 8192 320 160 Espressif ESP32-C6-DevKitC-1 (RV32IMAC)
  esp32-c2-devkitm-1 espressif32 espidf 4096 272 120 Espressif ESP32-C2-DevKitM-1
  rpipico2-riscv - arduino 4096 512 150 Raspberry Pi Pico 2 (RP2350, RISC-V)
esp8266
  nodemcuv2 espressif8266 arduino 1020 80 80 NodeMCU 1.0 (ESP-12E)
  d1_mini espressif8266 arduino 1020 80 80 WEMOS D1 mini
  nodemcu espressif8266 arduino 1020 80 80 NodeMCU 0.9
  esp12e espressif8266 arduino 1020 80 80 ESP-12E module
  esp01_1m espressif8266 arduino 744 80 80 ESP-01 module, 1 MB
  huzzah espressif8266 arduino 1020 80 80 Adafruit HUZZAH ESP8266
  d1_mini_lite espressif8266 arduino 744 80 80 WEMOS D1 mini lite
atmega328p
  uno atmelavr arduino 32 2 16 Arduino Uno
  nanoatmega328 atmelavr arduino 30 2 16 Arduino Nano
host
  - native none 0 0 0 this computer
"""


def _boards() -> Iterator[Board]:
    target = ""
    for line in _TABLE.splitlines():
        if not line.startswith(" "):
            target = line
            continue
        name, platform, frameworks, *numbers, title = line.split(maxsplit=6)
        flash, ram, clock = map(int, numbers)
        yield Board(
            name.strip("-"),
            platform.strip("-"),
            tuple(frameworks.split(",")),
            title,
            target,
            flash * _KILOBYTE,
            ram * _KILOBYTE,
            clock * 1_000_000,
        )


#: All boards, by target, the suggested ones first.
BOARDS: tuple[Board, ...] = tuple(_boards())


def boards_of(target: str, count: int | None = None) -> tuple[Board, ...]:
    """List the boards of a target, or the first ones."""
    return tuple(board for board in BOARDS if board.target == target)[:count]
