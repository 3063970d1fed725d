/** The requests and questions that this window sent an answer to. Its event may come before its response. */
export const answeredHere = new Set<string>();
