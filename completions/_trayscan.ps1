
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'trayscan' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'trayscan'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'trayscan' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the batch scan service on this machine')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a manual page (roff)')
            break
        }
        'trayscan;serve' {
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'Address and port to listen on; port 0 picks a free one')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'How the address and the credentials are printed: lines for people, or one JSON line')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the address and the credentials are printed: lines for people, or one JSON line')
            [CompletionResult]::new('--batches', '--batches', [CompletionResultType]::ParameterName, 'How many batches to make up')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'What the made-up batches and the faults grow from')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier to accept')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret to accept [default: a new random one]')
            [CompletionResult]::new('--token-ttl', '--token-ttl', [CompletionResultType]::ParameterName, 'How long a token lives')
            [CompletionResult]::new('--page-size', '--page-size', [CompletionResultType]::ParameterName, 'Batches in a page of version 2')
            [CompletionResult]::new('--v1-limit', '--v1-limit', [CompletionResultType]::ParameterName, 'The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse` [default: no limit, or 1000 with a fault of version 1]')
            [CompletionResult]::new('--fault', '--fault', [CompletionResultType]::ParameterName, 'Misbehave on purpose; repeatable (`--help` lists the faults)')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;completions' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;man' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
