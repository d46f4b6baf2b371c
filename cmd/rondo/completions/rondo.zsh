#compdef rondo
# Completes command lines of rondo in zsh: put this into a directory of fpath as _rondo, or
# source <(rondo completion zsh)
# The program itself answers what may come next.

_rondo() {
	local -a candidates
	local answer program=${~words[1]} files=""
	for answer in "${(@f)$("$program" __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
		case $answer in
		'') ;;
		:files | :dirs) files=$answer ;;
		*) candidates+=("${${answer%%$'\t'*}//:/\\:}:${answer#*$'\t'}") ;;
		esac
	done
	if [[ -n $files ]]; then
		[[ $PREFIX != --*=* ]] || compset -P '*='
		case $files in
		:files) _files ;;
		:dirs) _files -/ ;;
		esac
		return
	fi
	_describe rondo candidates
}

# As a file in fpath this is the function itself, else it is to be known to the shell.
if [[ ${funcstack[1]-} == _rondo ]]; then
	_rondo "$@"
else
	compdef _rondo rondo
fi
