# SPDX-License-Identifier: BSD-3-Clause
# Bash completion of uroce-run, uroced, uroce-ctl and testroce. Options and words come from the command's --help, so they
# are those of the installed version.

# The values of the option $1, one word each; or fail, if there is no list of them.
_uroce_values()
{
	case $1 in
	--netdev) command ls /sys/class/net ;;
	--log-level) echo error warn info debug ;;
	--progress) echo hybrid inline dedicated ;;
	--view) echo yes mount preload no ;;
	--telemetry) echo yes no ;;
	--like) echo connectx-6 irdma bnxt erdma rxe ;;
	--sack) echo auto yes no ;;
	--hand-over) echo direct checked owner ;;
	--capture) echo no port all ;;
	--mode) echo write read send atomic latency source sink null storage incast ;;
	--op) echo write read send atomic ;;
	--path-mtu) echo 256 512 1024 2048 4096 ;;
	*) return 1 ;;
	esac
}

# Succeed if the option $2 of the command $1 takes a value in the next word.
_uroce_takes_value()
{
	"$1" --help 2>/dev/null | command grep -qE -- "(^|[ ,])$2 ([A-Z]|[a-z]+\|)"
}

# uroce-run: where the program begins, in _uroce_program; or fail.
_uroce_find_program()
{
	local i

	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		--)
			_uroce_program=$((i + 1))
			return
			;;
		-*=*) ;;
		-*) ! _uroce_takes_value "${words[0]}" "${words[i]}" || i=$((i + 1)) ;;
		=) i=$((i + 1)) ;; # readline's own word break in --option=value
		*)
			_uroce_program=$i
			return
			;;
		esac
	done
	# The word that is being typed may be the program.
	[[ $i -eq $cword && ${words[i]} == [!-]* ]] && _uroce_program=$i
}

# The words of uroce-ctl after those that are there already.
_uroce_ctl_words()
{
	case " ${words[*]:1:cword-1} " in
	*" top "* | *" monitor "* | *" why "* | *" resource show "[qcmps]*" "* | *" log level "?*) echo dev link net pid ;;
	*" capture "* | *" congestion set "?*) echo qp dev link net pid ;;
	*" congestion set "*) echo algorithm ;;
	*" congestion show "*) echo dev link net pid ;;
	*" congestion "*) echo show set dev link net pid ;;
	*" metrics "*) echo show qp dev link net pid ;;
	*" statistic "*) echo show dev link net pid ;;
	*" cdi socket "* | *" doctor "*) ;;
	*" cdi "*) echo socket ;;
	*" resource show "*) echo qp cq mr pd srq ctx cm_id ;;
	*" dev "* | *" link "* | *" resource "*) echo show ;;
	*" log level "*) echo error warn info debug ;;
	*" log "*) echo level ;;
	*) "${words[0]}" --help 2>/dev/null | command sed -n 's/^\(Usage:\|      \) uroce-ctl \(\[[^]]*\] \)*\([a-z]\+\).*/\3/p' ;;
	esac
}

_uroce()
{
	local cur prev words cword split _uroce_program values

	_init_completion -s || return
	if [ "${1##*/}" = uroce-run ] && _uroce_find_program; then
		_command_offset "$_uroce_program"
		return
	fi
	if values=$(_uroce_values "$prev"); then
		COMPREPLY=($(compgen -W "$values" -- "$cur"))
		return
	fi
	case $prev in
	--config | --socket | --isolated | --json | --sweep)
		_filedir
		return
		;;
	esac
	if $split || { [[ $prev == -* ]] && _uroce_takes_value "$1" "$prev"; }; then
		return # a value that nobody can list
	fi
	case ${1##*/},$cur in
	uroce-ctl,[!-]* | uroce-ctl,) COMPREPLY=($(compgen -W "$(_uroce_ctl_words)" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$("$1" --help 2>/dev/null | command grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$cur")) ;;
	esac
}

complete -F _uroce uroce-run uroced uroce-ctl testroce
