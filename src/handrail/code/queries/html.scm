(_ (start_tag (attribute (attribute_name) @only.id [(attribute_value) @name (quoted_attribute_value (attribute_value) @name)]))) @element
(element (start_tag (tag_name) @only.h1.h2.h3.h4.h5.h6) . (text) @name) @heading
(comment) @comment
