# Completions of trayscan for fish.

# Commands that have subcommands, and options that have a value.
set -g __trayscan_parents config
set -g __trayscan_valued --against --api --archive --base-url --batches --by --ca-cert --client-id --client-secret --client-secret-file --color --config --delimiter --end --fail-on --fault --fields --format --limit --listen --lookback --manifest --max-age --message-format --output --page-size --parallel --period --profile --progress --retries --retry-wait --seed --since --sort --start --state --step --time-zone --timeout --title --token-ttl --until --v1-limit --wait --where -f -o

# Prints what was typed of the word at the cursor, without the name of its option.
function __trayscan_typed
    string replace -r '^--[^=]*=' '' -- (commandline -ct)
end

# Offers words for the last of several values, separated by commas. Those with `-` are offered only after a `-`.
function __trayscan_list
    set -l typed (__trayscan_typed)
    set -l before (string match -r '^.*,' -- "$typed")
    set -l last (string replace -r '^.*,' '' -- "$typed")
    for word in $argv
        if contains -- $word (string split ',' -- "$before")
            continue
        else if not string match -q -- '-*' $word; or string match -q -- '-*' "$last"
            printf '%s\n' "$before$word"
        end
    end
end

# Offers the fields $argv[1], then an operator; and the fields $argv[2], which are true or false.
function __trayscan_condition
    set -l fields (string split ' ' -- $argv[1])
    set -l typed (__trayscan_typed)
    if contains -- "$typed" $fields
        printf '%s\n' $typed{=,!=,'<','<=','>','>=','~'}
    else
        # Two of each, so that fish adds no space after a field.
        printf '%s\n' $fields{=,!=}
        for field in (string split ' ' -- $argv[2])
            printf '%s\n' $field !$field
        end
    end
end

# Offers the lines that `trayscan completions $argv[1]` prints.
function __trayscan_lines
    set -l words (commandline -opc)
    for index in (seq (count $words))
        switch $words[$index]
            case --config
                set -fx TRAYSCAN_CONFIG (string replace -r '^~' $HOME -- $words[(math $index + 1)])
            case '--config=*'
                set -fx TRAYSCAN_CONFIG (string replace -r '^--config=' '' -- $words[$index] | string replace -r '^~' $HOME)
        end
    end
    $words[1] completions $argv[1] 2>/dev/null
end

# Succeeds if $argv[1] is the command on the line, such as `export` or `config show`; empty for none yet. If $argv[2] is
# given, as many arguments must follow the command.
function __trayscan_at
    set -l command
    set -l arguments 0
    set -l is_value false
    for word in (commandline -opc)[2..]
        if $is_value
            set is_value false
        else if contains -- $word $__trayscan_valued
            set is_value true
        else if string match -q -- '-*' $word
            continue
        else if test -z "$command"; or contains -- "$command" $__trayscan_parents
            set -a command $word
        else
            set arguments (math $arguments + 1)
        end
    end
    test "$command" = "$argv[1]"; and begin
        not set -q argv[2]; or test $arguments = $argv[2]
    end
end

# Files are offered only where they are wanted.
complete -c trayscan -f

complete -c trayscan -n "__trayscan_at ''" -a export -d 'Fetch batches and write them to a file or to standard output'
complete -c trayscan -n "__trayscan_at ''" -a sync -d 'Keep a local archive in sync with the service'
complete -c trayscan -n "__trayscan_at ''" -a summary -d 'Show statistics per crop, month, week, day or person'
complete -c trayscan -n "__trayscan_at ''" -a report -d 'Write an HTML report with charts, for the browser or for print'
complete -c trayscan -n "__trayscan_at ''" -a verify -d 'Check a file against a manifest, another file or the service'
complete -c trayscan -n "__trayscan_at ''" -a check -d 'Test the settings, the connection and the credentials'
complete -c trayscan -n "__trayscan_at ''" -a serve -d 'Run the batch scan service locally, with demo data or from an archive'
complete -c trayscan -n "__trayscan_at ''" -a login -d 'Set up a profile: ask for base URL, client ID and secret, test them and save them'
complete -c trayscan -n "__trayscan_at ''" -a config -d 'Show or change settings, or create a config file'
complete -c trayscan -n "__trayscan_at ''" -a completions -d 'Print a shell completion script'
complete -c trayscan -n "__trayscan_at ''" -a man -d 'Print a manual page in roff format'
complete -c trayscan -n "__trayscan_at ''" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at ''" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at ''" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at ''" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at ''" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at ''" -s V -l version -d 'Print version'
complete -c trayscan -n "__trayscan_at 'export'" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'export'" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'export'" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'export'" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f -a '(__trayscan_condition "batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment" "warnings")'
complete -c trayscan -n "__trayscan_at 'export'" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__trayscan_at 'export'" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__trayscan_at 'export'" -l fields -d 'Fields to write, in this order (a,b,c), or to leave out (-a,-b)' -r -f -a '(__trayscan_list batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment warnings -batch_id -batch_name -batch_creation_date -crop_type -number_of_images -total_cells_per_tray -avg_germinated_seedlings -avg_non_germinated_seedlings -avg_germination_rate -avg_usable_seedlings -avg_non_usable_cells -avg_usable_seedling_rate -avg_coefficient_of_variation -avg_median_seedling_size_mm2 -scanned_by_email -analysis_link -comment -warnings)'
complete -c trayscan -n "__trayscan_at 'export'" -l sort -d 'Sort by one or more fields; `:desc` sorts in descending order [default: order of the service]' -r -f -a '(__trayscan_list batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment warnings batch_id:desc batch_name:desc batch_creation_date:desc crop_type:desc number_of_images:desc total_cells_per_tray:desc avg_germinated_seedlings:desc avg_non_germinated_seedlings:desc avg_germination_rate:desc avg_usable_seedlings:desc avg_non_usable_cells:desc avg_usable_seedling_rate:desc avg_coefficient_of_variation:desc avg_median_seedling_size_mm2:desc scanned_by_email:desc analysis_link:desc comment:desc warnings:desc)'
complete -c trayscan -n "__trayscan_at 'export'" -l limit -d 'Stop after N batches' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l dry-run -d 'Show what would be requested and written, without doing it'
complete -c trayscan -n "__trayscan_at 'export'" -s o -l output -d 'File to write; `.gz` or `.zst` compresses it [default: standard output]' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -s f -l format -d 'Output format [default: from the extension of FILE]' -r -f -a 'json ndjson csv tsv table xlsx parquet sqlite singer'
complete -c trayscan -n "__trayscan_at 'export'" -l no-clobber -d 'Fail with code 8 if the file exists, instead of replacing it'
complete -c trayscan -n "__trayscan_at 'export'" -l manifest -d 'Write a manifest (JSON) with the request, counts and checksums' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l only-changed -d 'Rewrite only the files whose batches changed since the manifest (with --archive)'
complete -c trayscan -n "__trayscan_at 'export'" -l success-marker -d 'Write an empty `_SUCCESS` file last, in the folder before the first {…} of `-o`'
complete -c trayscan -n "__trayscan_at 'export'" -l numbers -d 'json, ndjson: write decimals as numbers instead of strings, with the same digits'
complete -c trayscan -n "__trayscan_at 'export'" -l state -d 'singer: continue from the last STATE of an earlier run; an empty file starts anew' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l lookback -d 'singer: with --state, how far back to fetch again, to find late and changed batches [default: 7d]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l delimiter -d 'csv, tsv: cell separator, such as \';\', or `tab` [default: comma in csv, tab in tsv]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l decimal-comma -d 'csv, tsv: write a decimal comma; csv then separates cells with `;`'
complete -c trayscan -n "__trayscan_at 'export'" -l bom -d 'csv, tsv: start with a byte order mark'
complete -c trayscan -n "__trayscan_at 'export'" -l no-header -d 'csv, tsv: leave out the header line'
complete -c trayscan -n "__trayscan_at 'export'" -l excel -d 'csv, tsv: write for Excel: byte order mark, CRLF, dates that it reads, no text that runs as a formula'
complete -c trayscan -n "__trayscan_at 'export'" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'export'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'export'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'export'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'export'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'export'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'export'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'export'" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'export'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'export'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'export'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'export'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'export'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'sync' 0" -F
complete -c trayscan -n "__trayscan_at 'sync'" -l start -l since -d 'First date of the archive, or of the changes with --changes' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'sync'" -l lookback -d 'How far back to fetch again, to find late and changed batches' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l full -d 'Fetch everything again, and find batches that are gone from the service'
complete -c trayscan -n "__trayscan_at 'sync'" -l wait -d 'Wait up to this long if another run uses the archive [default: do not wait]' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l lenient -d 'Keep invalid batches as received, with null columns, instead of failing'
complete -c trayscan -n "__trayscan_at 'sync'" -l rebind -d 'Record the base URL and the client ID of the settings as those of the archive; sends no request'
complete -c trayscan -n "__trayscan_at 'sync'" -l status -d 'Show which days are complete, and the last runs; sends no request'
complete -c trayscan -n "__trayscan_at 'sync'" -l max-age -d 'Exit with code 10 if the archive has gaps, or its complete part is older than this' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l changes -d 'List batches that were added, changed, vanished or returned; sends no request'
complete -c trayscan -n "__trayscan_at 'sync'" -s f -l format -d 'Format of --status or --changes' -r -f -a 'text table json ndjson csv prometheus'
complete -c trayscan -n "__trayscan_at 'sync'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'sync'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'sync'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'sync'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'sync'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'sync'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'sync'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'sync'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'sync'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'sync'" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'sync'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'sync'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'sync'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'sync'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'sync'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'summary'" -l by -d 'Group by these fields; several make one group per combination' -r -f -a '(__trayscan_list crop_type month week day scanned_by_email)'
complete -c trayscan -n "__trayscan_at 'summary'" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'summary'" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'summary'" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'summary'" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f -a '(__trayscan_condition "batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment" "warnings")'
complete -c trayscan -n "__trayscan_at 'summary'" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__trayscan_at 'summary'" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__trayscan_at 'summary'" -s f -l format -d 'Output format [default: from the extension of FILE, else table]' -r -f -a 'table json csv'
complete -c trayscan -n "__trayscan_at 'summary'" -s o -l output -d 'File to write; `.gz` or `.zst` compresses it [default: standard output]' -r -F
complete -c trayscan -n "__trayscan_at 'summary'" -l no-clobber -d 'Fail with code 8 if the file exists, instead of replacing it'
complete -c trayscan -n "__trayscan_at 'summary'" -l fail-on -d 'Exit with code 10 if a crop is down, misses a target, or has a batch that needs attention' -r -f -a '(__trayscan_list down target attention)'
complete -c trayscan -n "__trayscan_at 'summary'" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__trayscan_at 'summary'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'summary'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'summary'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'summary'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'summary'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'summary'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'summary'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'summary'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'summary'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'summary'" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'summary'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'summary'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'summary'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'summary'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'summary'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'report'" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'report'" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'report'" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'report'" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f -a '(__trayscan_condition "batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment" "warnings")'
complete -c trayscan -n "__trayscan_at 'report'" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__trayscan_at 'report'" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__trayscan_at 'report'" -s o -l output -d 'File to write, such as report.html [default: standard output, unless it is a terminal]' -r -F
complete -c trayscan -n "__trayscan_at 'report'" -l no-clobber -d 'Fail with code 8 if the file exists, instead of replacing it'
complete -c trayscan -n "__trayscan_at 'report'" -l step -d 'Length of the periods to compare' -r -f -a 'day week\\t\'ISO weeks, Monday to Sunday\' month'
complete -c trayscan -n "__trayscan_at 'report'" -l open -d 'Open the page in the browser'
complete -c trayscan -n "__trayscan_at 'report'" -l title -d 'Title of the page, such as the name of the nursery' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l emails -d 'Show the e-mail address of the person who scanned each batch that needs attention'
complete -c trayscan -n "__trayscan_at 'report'" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__trayscan_at 'report'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'report'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'report'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'report'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'report'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'report'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'report'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'report'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'report'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'report'" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'report'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'report'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'report'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'report'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'report'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'verify' 0" -F
complete -c trayscan -n "__trayscan_at 'verify'" -l fields -d 'Compare only these fields (a,b,c), or all but these (-a,-b)' -r -f -a '(__trayscan_list batch_id batch_name batch_creation_date crop_type number_of_images total_cells_per_tray avg_germinated_seedlings avg_non_germinated_seedlings avg_germination_rate avg_usable_seedlings avg_non_usable_cells avg_usable_seedling_rate avg_coefficient_of_variation avg_median_seedling_size_mm2 scanned_by_email analysis_link comment warnings -batch_id -batch_name -batch_creation_date -crop_type -number_of_images -total_cells_per_tray -avg_germinated_seedlings -avg_non_germinated_seedlings -avg_germination_rate -avg_usable_seedlings -avg_non_usable_cells -avg_usable_seedling_rate -avg_coefficient_of_variation -avg_median_seedling_size_mm2 -scanned_by_email -analysis_link -comment -warnings)'
complete -c trayscan -n "__trayscan_at 'verify'" -l manifest -d 'Compare with a manifest from `export --manifest`' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -l against -d 'Compare with another file, in any format; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -l service -d 'Compare with the service, for the request in the manifest, or for --start and --end or --period'
complete -c trayscan -n "__trayscan_at 'verify'" -l archive -d 'Compare with an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -s f -l format -d 'Output format' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'verify'" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'verify'" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'verify'" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f -a 'today yesterday this-week last-week this-month last-month this-quarter last-quarter this-year last-year'
complete -c trayscan -n "__trayscan_at 'verify'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'verify'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'verify'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'verify'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'verify'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'verify'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'verify'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'verify'" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'verify'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'verify'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'verify'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'verify'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'verify'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'check'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'check'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'check'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'check'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'check'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'check'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'check'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'check'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'check'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'check'" -l probe -d 'Also find out how the service behaves, with a few dozen read-only requests'
complete -c trayscan -n "__trayscan_at 'check'" -s f -l format -d 'Output format' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'check'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'check'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'check'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'check'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'check'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'serve'" -l listen -d 'Address and port to listen on; port 0 picks a free port' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -s f -l format -d 'Format of the printed URL and credentials; `json` prints one line' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'serve'" -l archive -d 'Serve the batches of an archive of `trayscan sync`, and follow its changes' -r -F
complete -c trayscan -n "__trayscan_at 'serve'" -l batches -d 'Number of batches to generate' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l seed -d 'Seed of the generated batches and of the faults' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l client-id -d 'Client ID to accept; TRAYSCAN_CLIENT_ID is ignored here' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l client-secret -d 'Client secret to accept; TRAYSCAN_CLIENT_SECRET is ignored here [default: random]' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l token-ttl -d 'Lifetime of a token' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l page-size -d 'Batches per page in version 2' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l v1-limit -d 'Maximum number of batches in version 1 [default: none, or 1000 with a v1 fault]' -r -f
complete -c trayscan -n "__trayscan_at 'serve'" -l fault -d 'Simulate a fault; can be repeated (see --help for the list)' -r -f -a '503:\\t\'answer 503 with probability P\' 500:\\t\'answer 500 with probability P\' 429:\\t\'answer 429 with probability P\' busy:\\t\'answer 503 while N other requests are served\' retry-after:\\t\'send Retry-After with these, in seconds\' latency:\\t\'wait before every answer\' reset:\\t\'reset the connection within the body\' truncate:\\t\'close the connection before the body is complete\' gzip\\t\'compress answers for clients that accept gzip\' bandwidth:\\t\'limit all answers together to MBIT megabits per second\' clock:\\t\'shift the clock, such as by +30d or -2h\' v2-missing\\t\'answer 404 for all of version 2\' v1-truncate\\t\'cut off version 1 above its limit\' v1-refuse\\t\'refuse version 1 above its limit (default 422)\' v1-refuse:\\t\'refuse version 1 above its limit (default 422)\' cursor-expiry:\\t\'refuse the cursor of page N, once per range\' cursor-ignored\\t\'answer every cursor with the first page and a new cursor\' dates-with-cursor:required\\t\'require or refuse dates together with a cursor\' dates-with-cursor:refused\\t\'require or refuse dates together with a cursor\' empty-pages:\\t\'send empty pages before full ones\' shuffle\\t\'send batches in random order\' newest-first\\t\'send the newest batches first\' duplicates:\\t\'repeat a batch on the next page\' unknown-fields\\t\'add fields that are not in the API\' token-uses:\\t\'accept a token for N requests only\' tokens-shared\\t\'accept a token in both versions\' expires-in\\t\'send expires_in with the token\' bad-token:\\t\'status for an invalid token (default 401)\' bad-cursor:\\t\'status for an invalid next_token (default 422)\''
complete -c trayscan -n "__trayscan_at 'serve'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'serve'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'serve'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'serve'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'serve'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'login'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'login'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'login'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'login'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'login'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'login'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'login'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'login'" -l force -d 'Save the profile even if the service cannot be reached or refuses the credentials'
complete -c trayscan -n "__trayscan_at 'login'" -l profile -d 'Profile to create or change [default: `default_profile` of the config file, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'login'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'login'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'login'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'login'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'login'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'config'" -a path -d 'Print the path of the config file'
complete -c trayscan -n "__trayscan_at 'config'" -a show -d 'Print the current settings and their sources, with secrets masked'
complete -c trayscan -n "__trayscan_at 'config'" -a init -d 'Create a config file with an explanation of every key'
complete -c trayscan -n "__trayscan_at 'config'" -a set -d 'Change one key of a profile; creates the config file and the profile if needed'
complete -c trayscan -n "__trayscan_at 'config'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'config'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'config'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'config'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'config'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'config path'" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__trayscan_at 'config path'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'config path'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'config path'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'config path'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'config path'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'config show'" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__trayscan_at 'config show'" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__trayscan_at 'config show'" -l api -d 'API version [default: auto]' -r -f -a 'auto v1 v2'
complete -c trayscan -n "__trayscan_at 'config show'" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__trayscan_at 'config show'" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__trayscan_at 'config show'" -l allow-http -d 'Allow unencrypted http to other machines' -f -a 'true false'
complete -c trayscan -n "__trayscan_at 'config show'" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f -a '(__trayscan_lines time-zones)'
complete -c trayscan -n "__trayscan_at 'config show'" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'config show'" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__trayscan_at 'config show'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'config show'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'config show'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'config show'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'config show'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'config init'" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__trayscan_at 'config init'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'config init'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'config init'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'config init'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'config init'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'config set' 0" -f -a 'base_url\\t\'URL of the service, such as https://scan.example.com/api\' client_id\\t\'Client ID\' client_secret_file\\t\'File that contains the client secret; `-` reads standard input\' client_secret_command api\\t\'API version [default: auto]\' parallel\\t\'Maximum number of parallel requests [default: 4]\' retries\\t\'Number of retries per request [default: 5]\' retry_wait\\t\'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]\' timeout\\t\'Time out if no data arrives for this long [default: 60s]\' ca_cert\\t\'Extra CA certificate to trust (PEM)\' allow_http\\t\'Allow unencrypted http to other machines\' time_zone\\t\'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]\' default_profile\\t\'Profile to use without --profile\''
complete -c trayscan -n "__trayscan_at 'config set' 1" -f
complete -c trayscan -n "__trayscan_at 'config set'" -l profile -d 'Profile to change [default: `default_profile` of the config file, else `default`]' -r -f -a '(__trayscan_lines profiles)'
complete -c trayscan -n "__trayscan_at 'config set'" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__trayscan_at 'config set'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'config set'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'config set'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'config set'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'config set'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'completions' 0" -f -a 'bash elvish fish powershell zsh'
complete -c trayscan -n "__trayscan_at 'completions'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'completions'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'completions'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'completions'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'completions'" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__trayscan_at 'man' 0" -f -a 'export sync summary report verify check serve login config completions man archive config-file figures formats manifest service storage'
complete -c trayscan -n "__trayscan_at 'man'" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__trayscan_at 'man'" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__trayscan_at 'man'" -l color -d 'When to use colour' -r -f -a 'auto always never'
complete -c trayscan -n "__trayscan_at 'man'" -l message-format -d 'Format of messages on standard error' -r -f -a 'text json'
complete -c trayscan -n "__trayscan_at 'man'" -s h -l help -d 'Print help (see more with \'--help\')'
