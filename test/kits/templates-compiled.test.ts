import { testTemplates } from '../support/templates.ts';

testTemplates('go', { name: 'booking', files: ['go.mod'] });
testTemplates('rust');
testTemplates('c', { name: 'filebox', files: ['frontend/index.html', 'fnv.c', 'fnv.h'] });
