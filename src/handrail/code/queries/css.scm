(rule_set (selectors) @name) @rule
(media_statement (_) @name (block)) @media
(keyframes_statement (keyframes_name) @name) @rule
(comment) @comment
