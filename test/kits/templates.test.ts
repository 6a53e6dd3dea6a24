import { testTemplates } from '../support/templates.ts';

testTemplates('ts', { name: 'filebox', files: ['frontend/index.html', 'fnv.ts'] });
testTemplates('as', { name: 'weather', files: [] });
