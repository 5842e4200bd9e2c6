/* Start-up of a RISC-V core in an emulator: trap handler, stack, zeroed memory, main. */
    .section .vectors, "ax"
    .globl board_reset
board_reset:
    la sp, board_stack_top
    la t0, board_trap
    .option push
    .option arch, +zicsr
    csrw mtvec, t0
    .option pop
    la t0, board_bss_start
    la t1, board_bss_end
1:
    beq t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:
    call main
    call board_exit
3:
    j 3b

    /* A trap, for instance an instruction that the core lacks, must not look like a result. */
    .balign 4
board_trap:
    li a0, 70
    call board_exit
4:
    j 4b

    /* A call of the emulator: three instructions of 32 bits in one page. */
    .text
    .balign 16
    .globl semihosting
semihosting:
    .option push
    .option norvc
    slli zero, zero, 0x1f
    ebreak
    srai zero, zero, 7
    .option pop
    ret
