exports.count = (words) => words.split(/\s+/).filter(Boolean).length;
