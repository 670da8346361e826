# Offers these words. More follows a word that ends with `:`.
_trayscan_words() {
    compadd -S '' -- ${(M)@:#*:}
    compadd -- ${@:#*:}
}

# Offers words for the last of several values, separated by commas. Those with `-` are offered only after a `-`.
_trayscan_list() {
    local -a words=("$@") used=(${(s:,:)${(M)PREFIX##*,}})
    words=(${words:|used})
    compset -P '*,'
    [[ $PREFIX == -* ]] || words=(${words:#-*})
    compadd -qS , -- $words
}

# Offers the fields $1, then an operator; and the fields $2, which are true or false.
_trayscan_condition() {
    local -a fields=(${=1}) booleans=(${=2})
    if (( ${fields[(Ie)$PREFIX]} )); then
        compadd -S '' -- $PREFIX{=,!=,'<','<=','>','>=','~'}
    else
        compadd -S '' -- $fields
        compadd -- $booleans '!'${^booleans}
    fi
}

# Offers the lines that `trayscan completions $1` prints.
_trayscan_lines() {
    local config=${TRAYSCAN_CONFIG-}
    integer index=${words[(I)--config]}
    (( index )) && config=${~${(Q)words[index + 1]}}
    index=${words[(I)--config=*]}
    (( index )) && config=${~${(Q)words[index]#--config=}}
    compadd -- ${(f)"$(TRAYSCAN_CONFIG=$config ${~${(Q)trayscan}} completions $1 2> /dev/null)"}
}

if [[ $funcstack[1] == _trayscan ]]; then
    _trayscan "$@"
else
    compdef _trayscan trayscan
fi
