# Completes the command backtrail in PowerShell: run this in your $PROFILE.

Register-ArgumentCompleter -Native -CommandName backtrail -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $program = $commandAst.CommandElements[0].ToString()
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($wordToComplete -eq '') {
        $lines = & $program __complete --empty -- @words 2>$null
    } else {
        $lines = & $program __complete -- @words 2>$null
    }
    foreach ($line in $lines) {
        # Where nothing is offered, PowerShell names files itself.
        if ($line.StartsWith(':')) { continue }
        $value, $what = $line -split "`t", 2
        if (-not $what) { $what = $value }
        $text = $value
        if ($value -notmatch '^[A-Za-z0-9_.:/=-]+$') { $text = "'" + $value.Replace("'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $what)
    }
}
