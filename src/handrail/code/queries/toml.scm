(table . (bare_key) @name) @table
(table . (dotted_key) @name) @table
(table . (quoted_key) @name) @table
(table_array_element . (bare_key) @name) @table
(table_array_element . (dotted_key) @name) @table
(pair . (bare_key) @name) @key
(pair . (dotted_key) @name) @key
(pair . (quoted_key) @name) @key
(comment) @comment
