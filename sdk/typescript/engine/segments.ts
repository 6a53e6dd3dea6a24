/** What stands in the two segments of the engine until a plugin is linked. */
export const CODE_MARK = 'code of the plugin';
export const POSITIONS_MARK = 'positions of the plugin';
