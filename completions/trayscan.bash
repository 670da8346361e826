# Completions of trayscan for bash.

_trayscan_options() {
    case $command in
        '')
            flags='-q --quiet -v --verbose --color --message-format -h --help -V --version'
            valued='--color --message-format'
            optional=''
            subcommands='export sync summary report verify check serve login config completions man'
            ;;
        'export')
            flags='--start --since --end --until --period --where --lenient --fail-on-empty --fields --sort --limit --dry-run -o --output -f --format --no-clobber --manifest --only-changed --success-marker --numbers --state --lookback --delimiter --decimal-comma --bom --no-header --excel --archive --sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --progress -q --quiet -v --verbose --color --message-format -h --help'
            valued='--start --since --end --until --period --where --fields --sort --limit -o --output -f --format --state --lookback --delimiter --archive --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --progress --color --message-format'
            optional='--manifest'
            subcommands=''
            ;;
        'sync')
            flags='--start --since --lookback --full --wait --lenient --rebind --status --max-age --changes -f --format --sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --progress -q --quiet -v --verbose --color --message-format -h --help'
            valued='--start --since --lookback --wait --max-age -f --format --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --progress --color --message-format'
            optional=''
            subcommands=''
            ;;
        'summary')
            flags='--by --start --since --end --until --period --where --lenient --fail-on-empty -f --format -o --output --no-clobber --fail-on --archive --sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --progress -q --quiet -v --verbose --color --message-format -h --help'
            valued='--by --start --since --end --until --period --where -f --format -o --output --fail-on --archive --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --progress --color --message-format'
            optional=''
            subcommands=''
            ;;
        'report')
            flags='--start --since --end --until --period --where --lenient --fail-on-empty -o --output --no-clobber --step --open --title --emails --archive --sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --progress -q --quiet -v --verbose --color --message-format -h --help'
            valued='--start --since --end --until --period --where -o --output --step --title --archive --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --progress --color --message-format'
            optional=''
            subcommands=''
            ;;
        'verify')
            flags='--fields --manifest --against --service --archive -f --format --start --since --end --until --period --sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --progress -q --quiet -v --verbose --color --message-format -h --help'
            valued='--fields --manifest --against --archive -f --format --start --since --end --until --period --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --progress --color --message-format'
            optional=''
            subcommands=''
            ;;
        'check')
            flags='--sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config --probe -f --format -q --quiet -v --verbose --color --message-format -h --help'
            valued='--base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config -f --format --color --message-format'
            optional=''
            subcommands=''
            ;;
        'serve')
            flags='--listen -f --format --archive --batches --seed --client-id --client-secret --token-ttl --page-size --v1-limit --fault -q --quiet -v --verbose --color --message-format -h --help'
            valued='--listen -f --format --archive --batches --seed --client-id --client-secret --token-ttl --page-size --v1-limit --fault --color --message-format'
            optional=''
            subcommands=''
            ;;
        'login')
            flags='--base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --config --force --profile -q --quiet -v --verbose --color --message-format -h --help'
            valued='--base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --config --profile --color --message-format'
            optional=''
            subcommands=''
            ;;
        'config')
            flags='-q --quiet -v --verbose --color --message-format -h --help'
            valued='--color --message-format'
            optional=''
            subcommands='path show init set'
            ;;
        'config path')
            flags='--config -q --quiet -v --verbose --color --message-format -h --help'
            valued='--config --color --message-format'
            optional=''
            subcommands=''
            ;;
        'config show')
            flags='--sandbox --base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --allow-http --time-zone --profile --config -q --quiet -v --verbose --color --message-format -h --help'
            valued='--base-url --client-id --client-secret --client-secret-file --api --parallel --retries --retry-wait --timeout --ca-cert --time-zone --profile --config --color --message-format'
            optional=''
            subcommands=''
            ;;
        'config init')
            flags='--config -q --quiet -v --verbose --color --message-format -h --help'
            valued='--config --color --message-format'
            optional=''
            subcommands=''
            ;;
        'config set')
            flags='--profile --config -q --quiet -v --verbose --color --message-format -h --help'
            valued='--profile --config --color --message-format'
            optional=''
            subcommands=''
            ;;
        'completions')
            flags='-q --quiet -v --verbose --color --message-format -h --help'
            valued='--color --message-format'
            optional=''
            subcommands=''
            ;;
        'man')
            flags='-q --quiet -v --verbose --color --message-format -h --help'
            valued='--color --message-format'
            optional=''
            subcommands=''
            ;;
    esac
}

_trayscan_value() {
    case "$command $flag" in
        *' --against') _trayscan_files ;;
        *' --allow-http') _trayscan_offer true false ;;
        *' --api') _trayscan_offer auto v1 v2 ;;
        *' --archive') _trayscan_files ;;
        *' --base-url') : ;;
        *' --batches') : ;;
        *' --by') _trayscan_list crop_type month week day scanned_by_email ;;
        *' --ca-cert') _trayscan_files ;;
        *' --client-id') : ;;
        *' --client-secret') : ;;
        *' --client-secret-file') _trayscan_files ;;
        *' --color') _trayscan_offer auto always never ;;
        *' --config') _trayscan_files ;;
        *' --delimiter') : ;;
        *' --end') _trayscan_offer today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year ;;
        *' --fail-on') _trayscan_list down target attention ;;
        *' --fault') _trayscan_offer 503: 500: 429: busy: retry-after: latency: reset: truncate: gzip bandwidth: clock: v2-missing v1-truncate v1-refuse v1-refuse: cursor-expiry: cursor-ignored dates-with-cursor:required dates-with-cursor:refused empty-pages: shuffle newest-first duplicates: unknown-fields token-uses: tokens-shared expires-in bad-token: bad-cursor: ;;
        *' --fields') _trayscan_list batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment warnings -batch_id -batch_name -batch_creation_date -crop_type -number_of_images -total_cells_per_tray -avg_germinated_seedlings -avg_non_germinated_seedlings -avg_germination_rate -avg_usable_seedlings -avg_non_usable_cells -avg_usable_seedling_rate -avg_coefficient_of_variation -avg_median_seedling_size_mm2 -scanned_by_email -analysis_link -comment -warnings ;;
        'export --format') _trayscan_offer json ndjson csv tsv table xlsx parquet sqlite singer ;;
        'summary --format') _trayscan_offer table json csv ;;
        'verify --format' | 'check --format' | 'serve --format') _trayscan_offer text json ;;
        'sync --format') _trayscan_offer text table json ndjson csv prometheus ;;
        *' --limit') : ;;
        *' --listen') : ;;
        *' --lookback') : ;;
        *' --manifest') _trayscan_files ;;
        *' --max-age') : ;;
        *' --message-format') _trayscan_offer text json ;;
        *' --output') _trayscan_files ;;
        *' --page-size') : ;;
        *' --parallel') : ;;
        *' --period') _trayscan_offer today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year ;;
        *' --profile') _trayscan_lines profiles ;;
        *' --progress') _trayscan_offer auto always never ;;
        *' --retries') : ;;
        *' --retry-wait') : ;;
        *' --seed') : ;;
        *' --since') _trayscan_offer today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year ;;
        *' --sort') _trayscan_list batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment warnings batch_id:desc batch_name:desc batch_creation_date:desc crop_type:desc number_of_images:desc total_cells_per_tray:desc avg_germinated_seedlings:desc avg_non_germinated_seedlings:desc avg_germination_rate:desc avg_usable_seedlings:desc avg_non_usable_cells:desc avg_usable_seedling_rate:desc avg_coefficient_of_variation:desc avg_median_seedling_size_mm2:desc scanned_by_email:desc analysis_link:desc comment:desc warnings:desc ;;
        *' --start') _trayscan_offer today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year ;;
        *' --state') _trayscan_files ;;
        *' --step') _trayscan_offer day week month ;;
        *' --time-zone') _trayscan_lines time-zones ;;
        *' --timeout') : ;;
        *' --title') : ;;
        *' --token-ttl') : ;;
        *' --until') _trayscan_offer today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year ;;
        *' --v1-limit') : ;;
        *' --wait') : ;;
        *' --where') _trayscan_condition 'batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment' 'warnings' ;;
        'export -f') _trayscan_offer json ndjson csv tsv table xlsx parquet sqlite singer ;;
        'summary -f') _trayscan_offer table json csv ;;
        'verify -f' | 'check -f' | 'serve -f') _trayscan_offer text json ;;
        'sync -f') _trayscan_offer text table json ndjson csv prometheus ;;
        *' -o') _trayscan_files ;;
    esac
}

_trayscan_argument() {
    case "$command $index" in
        'sync 0') _trayscan_files ;;
        'verify 0') _trayscan_files ;;
        'config set 0') _trayscan_offer base_url client_id client_secret_file client_secret_command api parallel retries retry_wait timeout ca_cert allow_http time_zone default_profile ;;
        'config set 1') : ;;
        'completions 0') _trayscan_offer bash elvish fish powershell zsh ;;
        'man 0') _trayscan_offer export sync summary report verify check serve login config completions man archive config-file figures formats manifest service storage ;;
    esac
}

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
