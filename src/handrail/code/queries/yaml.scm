(block_mapping_pair key: (flow_node) @name) @key
(flow_pair key: (flow_node) @name) @key
(comment) @comment
