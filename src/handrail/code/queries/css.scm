(rule_set (selectors) @name) @rule
(media_statement (_) @name (block)) @media
(keyframes_statement (keyframes_name) @name) @rule
(declaration (property_name) @name) @property
(comment) @comment
