# The functions below use these variables of _trayscan:
#   command  the command on the line, such as `export` or `config show`
#   cur      the word to complete, or the value in --option=value
#   split    what of it stands in earlier words, because bash splits words at `=` and `:`
#   kept     what comes before it in the same word
#   quote    the quote that it begins with

# Offers the words that begin with what was typed.
_trayscan_offer() {
    local word
    for word in "$@"; do
        [[ $word == "$cur"* ]] || continue
        word=${word#"$split"}
        if [[ ! $quote && $word == *[!A-Za-z0-9_.,:=/+@%-]* ]]; then
            printf -v word %q "$word"
        fi
        # More follows such a word.
        [[ $word == *: ]] && compopt -o nospace 2> /dev/null
        COMPREPLY+=("$kept$word")
    done
}

# Offers words for the last of several values, separated by commas. Those with `-` are offered only after a `-`.
_trayscan_list() {
    local word last=${cur##*,} before
    before=${cur%"$last"}
    compopt -o nospace 2> /dev/null
    for word in "$@"; do
        [[ $word == -* && $last != -* || ,$before == *,"$word",* ]] || _trayscan_offer "$before$word"
    done
}

# Offers the fields $1, then an operator; and the fields $2, which are true or false.
_trayscan_condition() {
    local word fields=" $1 "
    compopt -o nospace 2> /dev/null
    if [[ $cur && $fields == *" $cur "* ]]; then
        for word in '=' '!=' '<' '<=' '>' '>=' '~'; do
            _trayscan_offer "$cur$word"
        done
        return
    fi
    for word in $1; do
        # Two of each, so that bash does not close the quote after a field.
        if [[ $quote ]]; then _trayscan_offer "$word=" "$word!="; else _trayscan_offer "$word"; fi
    done
    for word in $2; do _trayscan_offer "$word" "!$word"; done
}

# Offers the lines that `trayscan completions $1` prints.
_trayscan_lines() {
    local word program=${COMP_WORDS[0]/#\~/$HOME}
    while IFS= read -r word; do
        _trayscan_offer "$word"
    done < <(
        [[ $config ]] && export TRAYSCAN_CONFIG=${config/#\~/$HOME}
        "$program" completions "$1" 2> /dev/null
    )
}

# Offers files, or folders with -d.
_trayscan_files() {
    local word
    compopt -o filenames 2> /dev/null
    while IFS= read -r word; do
        COMPREPLY+=("$kept${word#"$split"}")
    done < <(compgen "${1:--f}" -- "$cur")
}

_trayscan() {
    local command='' cur='' split='' kept='' quote='' config='' flag='' after='' rest=''
    local flags valued optional subcommands words=() raw word index=0 last=-1 i
    local IFS=$' \t\n'
    COMPREPLY=()

    # Join the words that bash has split.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        raw=${COMP_WORDS[i]-}
        if ((last > 0)) && [[ $raw =~ ^[=:]+$ || $after ]] &&
            [[ $raw || ${COMP_LINE:0:COMP_POINT} != *[[:blank:]] ]]; then
            split=${words[last]}
            words[last]+=$raw
        else
            split=
            words[++last]=$raw
        fi
        after=
        [[ $raw =~ ^[=:]+$ ]] && after=1
    done
    cur=${words[last]-}
    [[ $after ]] && split=$cur

    # Find the command, and the option whose value is to be completed.
    _trayscan_options
    for ((i = 1; i < last; i++)); do
        word=${words[i]}
        if [[ $rest ]]; then
            ((index++))
        elif [[ $word == -- ]]; then
            rest=1
        elif [[ $word == --config=* ]]; then
            config=${word#*=}
        elif [[ " $valued " == *" $word "* ]]; then
            if ((i + 1 == last)); then
                flag=$word
            else
                [[ $word == --config ]] && config=${words[i + 1]}
                ((i++))
            fi
        elif [[ " $optional " == *" $word "* ]]; then
            if [[ ${words[i + 1]} != -* ]]; then
                ((i + 1 == last)) && flag=$word
                ((i++))
            fi
        elif [[ $word == -* ]]; then
            :
        elif [[ " $subcommands " == *" $word "* ]]; then
            command+=${command:+ }$word
            _trayscan_options
        else
            ((index++))
        fi
    done

    if [[ ! $flag && ! $rest && $cur == --*=* ]]; then
        flag=${cur%%=*}
        if [[ $split == "$flag="* ]]; then
            split=${split#"$flag="}
        else
            kept=$flag=
        fi
        cur=${cur#*=}
    fi
    if [[ $cur == [\"\']* ]]; then
        quote=${cur:0:1}
        cur=${cur:1}
    fi

    if [[ $flag ]]; then
        _trayscan_value
    elif [[ ! $rest && $cur == -* ]]; then
        for word in $flags; do _trayscan_offer "$word"; done
    else
        for word in $subcommands; do _trayscan_offer "$word"; done
        _trayscan_argument
    fi
}

complete -F _trayscan trayscan
