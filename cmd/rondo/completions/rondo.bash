# Completes command lines of rondo in bash: source <(rondo completion bash)
# The program itself answers what may come next. It works without the package
# bash-completion, and with the bash 3.2 of macOS.

_rondo() {
	local line=${COMP_LINE:0:COMP_POINT} program=${1/#\~\//$HOME/}
	local words=() piece="" i answer stem

	# bash takes = and : for ends of words. What no blank separates is one word here; piece is
	# what bash will replace.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if [[ $i -eq 0 || $line == [[:space:]]* ]]; then
			line=${line#"${line%%[![:space:]]*}"}
			words+=("")
		fi
		piece=${COMP_WORDS[i]}
		[[ $i -lt $COMP_CWORD ]] || piece=$line
		line=${line#"$piece"}
		words[${#words[@]} - 1]+=$piece
	done
	case $piece in
	= | :) piece="" ;;
	esac
	stem=${words[${#words[@]} - 1]}
	stem=${stem%"$piece"}

	# With no candidate the names of files come, unless they fit here never.
	type compopt &>/dev/null && compopt +o default
	COMPREPLY=()
	while IFS= read -r answer; do
		case $answer in
		:files) type compopt &>/dev/null && compopt -o default ;;
		:dirs) type compopt &>/dev/null && compopt -o dirnames ;;
		*)
			answer=${answer%%$'\t'*}
			COMPREPLY+=("${answer#"$stem"}")
			;;
		esac
	done < <("$program" __complete "${words[@]:1}" 2>/dev/null)
}

complete -o default -F _rondo rondo
