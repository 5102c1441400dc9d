{{ comment }}
{{ prelude }}{{ kernels }}
