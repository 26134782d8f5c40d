/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The boot sector of a guest that counts. It writes a pattern into 16 MiB, and then in each round it
 * checks the count in each page of 16 more MiB, adds one to it, checks one page of the pattern, and
 * writes the count to the first serial port, as eight hexadecimal digits and a newline. A page with
 * another content makes it write "E" and stop.
 */
	.set	STATIC, 0x100000		/* 16 MiB with the pattern */
	.set	COUNTED, 0x1100000		/* 16 MiB with counts */
	.set	SIZE, 0x1000000
	.set	PAGE, 4096
	.set	FACTOR, 2654435761		/* the pattern: address times this */
	.set	COM1, 0x3f8

	.code16
	.globl	_start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	table_pointer
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$8, $flat

	.code32
flat:
	movw	$16, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$0x7c00, %esp
	inb	$0x92, %al			/* address line 20 */
	orb	$2, %al
	outb	%al, $0x92

	movl	$STATIC, %edi
fill:
	imull	$FACTOR, %edi, %eax
	movl	%eax, (%edi)
	addl	$4, %edi
	cmpl	$STATIC + SIZE, %edi
	jb	fill
	movl	$COUNTED, %edi
clear:
	movl	$0, (%edi)
	addl	$PAGE, %edi
	cmpl	$COUNTED + SIZE, %edi
	jb	clear

	xorl	%ebx, %ebx			/* the count */
	movl	$STATIC, %esi			/* the next page of the pattern */
round:
	movl	$COUNTED, %edi
count:
	cmpl	%ebx, (%edi)
	jne	differs
	incl	(%edi)
	addl	$PAGE, %edi
	cmpl	$COUNTED + SIZE, %edi
	jb	count
	incl	%ebx

	movl	$PAGE / 4, %ecx
check:
	imull	$FACTOR, %esi, %eax
	cmpl	%eax, (%esi)
	jne	differs
	addl	$4, %esi
	loop	check
	cmpl	$STATIC + SIZE, %esi
	jb	write
	movl	$STATIC, %esi
write:
	movl	%ebx, %ebp
	movl	$8, %ecx
digit:
	roll	$4, %ebp
	movl	%ebp, %eax
	andl	$15, %eax
	movb	digits(%eax), %al
	call	put
	loop	digit
	movb	$'\n', %al
	call	put
	jmp	round

differs:
	movb	$'E', %al
	call	put
	hlt
	jmp	differs

put:
	pushl	%eax
	movw	$COM1 + 5, %dx
wait:
	inb	%dx, %al
	testb	$0x20, %al
	jz	wait
	popl	%eax
	movw	$COM1, %dx
	outb	%al, %dx
	ret

digits:
	.ascii	"0123456789abcdef"
	.balign	8
table:
	.quad	0
	.quad	0x00cf9a000000ffff		/* code */
	.quad	0x00cf92000000ffff		/* data */
table_pointer:
	.word	. - table - 1
	.long	table

	.org	510
	.word	0xaa55
